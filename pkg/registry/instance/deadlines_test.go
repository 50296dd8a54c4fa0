package instance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"go.opendefense.cloud/krop/pkg/registry"
)

func TestAllAttemptsOfAWriteShareOneTime(t *testing.T) {
	s := start(t)
	before := s.create(t, "one")
	s.composer.preflightDeadlines = nil
	s.composer.meanwhile = func() { // somebody records status, so that storing has to be tried again
		newer := before.DeepCopy()
		_ = unstructured.SetNestedField(newer.Object, "meanwhile", "status", "state")
		if _, err := s.main.Records().Record(t.Context(), newer); err != nil {
			t.Error(err)
		}
	}
	began := time.Now()
	change := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := registry.AsObject(old).DeepCopy()
		_ = unstructured.SetNestedField(changed.Object, "large", "spec", "size")
		return changed, nil
	})
	if _, _, err := s.main.Update(s.ctx, "one", change, nil, nil, false, &metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got := s.composer.preflightDeadlines
	if len(got) != 2 || !got[0].Equal(got[1]) {
		t.Errorf("deadlines of preflight: %v, want the same twice", got)
	}
	if end := s.composer.applyDeadline; end.Sub(got[0]) < 4*time.Second || end.After(began.Add(time.Minute+time.Second)) {
		t.Errorf("preflight ends at %v and applying at %v: nothing is kept for it, or it is more than a minute in all", got[0], end)
	}
}

func TestAWriteThatWaitsForAnotherIsAnswered(t *testing.T) {
	s := startWith(t, 200*time.Millisecond)
	unlock, err := s.main.Records().Lock(t.Context(), registry.KeyOf(export, withCluster(widget("one"))))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := s.main.Create(s.ctx, widget("one"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsTimeout(err) {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestWarningsDoNotSayWhereServersAre(t *testing.T) {
	s := start(t)
	s.composer.failApply = errors.New(`recording status: rpc error: dial tcp 127.0.0.1:2379: connect: connection refused`)
	heard := &recorder{}
	if _, err := s.main.Create(warning.WithWarningRecorder(s.ctx, heard), widget("one"), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(heard.texts) != 1 || strings.Contains(heard.texts[0], "127.0.0.1") {
		t.Errorf("warnings: %q", heard.texts)
	}
}

type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

func withCluster(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetAnnotations(map[string]string{"kcp.io/cluster": consumer.String()})
	return object
}
