package instance_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/budget"
)

// TestInstancesThatAreTooLargeAreRefusedBeforeComposing creates one, and makes a stored one grow.
func TestInstancesThatAreTooLargeAreRefusedBeforeComposing(t *testing.T) {
	s := start(t)
	large := widget("large")
	_ = unstructured.SetNestedField(large.Object, strings.Repeat("x", budget.InstanceBytes.Default), "spec", "size")
	_, err := s.main.Create(s.ctx, large, nil, &metav1.CreateOptions{})
	wantBound(t, err, budget.InstanceBytes)
	s.wantAbsent(t, "large")
	before := s.create(t, "grows")
	preflights := s.composer.preflights
	_, err = s.update(before, "spec", strings.Repeat("x", budget.InstanceBytes.Default))
	wantBound(t, err, budget.InstanceBytes)
	if s.composer.preflights != preflights {
		t.Error("what is too large was composed")
	}
	// What takes the room of the largest is fine: annotations are bounded by themselves.
	fits := widget("fits")
	_ = unstructured.SetNestedField(fits.Object, strings.Repeat("x", budget.InstanceBytes.Default-(64<<10)), "spec", "size")
	if _, err := s.main.Create(s.ctx, fits, nil, &metav1.CreateOptions{}); err != nil {
		t.Errorf("just below the bound: %v", err)
	}
}

func wantBound(t *testing.T, err error, bound *budget.Bound) {
	t.Helper()
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "--"+bound.Name) {
		t.Errorf("got %v, want 413 that names %s", err, bound.Name)
	}
}

func TestAnnotationsAreBounded(t *testing.T) {
	s := start(t)
	annotated := widget("annotated")
	annotated.SetAnnotations(map[string]string{"example.org/large": strings.Repeat("x", 300<<10)})
	if _, err := s.main.Create(s.ctx, annotated, nil, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want Invalid", err)
	}
	labelled := widget("labelled")
	labelled.SetLabels(map[string]string{strings.Repeat("k", 1<<20): "v"})
	if _, err := s.main.Create(s.ctx, labelled, nil, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want Invalid", err)
	}
}
