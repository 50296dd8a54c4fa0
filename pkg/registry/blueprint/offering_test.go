package blueprint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
)

// slow is storage that takes its time for one export.
type slow struct {
	export  v1alpha1.ExportKey
	begun   chan struct{}
	release chan struct{}
}

func (s slow) Build(_ context.Context, program *engine.Program) (*registry.Served, error) {
	if program.Export == s.export {
		close(s.begun)
		<-s.release
	}
	return &registry.Served{Export: program.Export, Program: program, Gate: &registry.Gate{}}, nil
}

func (slow) Swap(*registry.Served, *engine.Program) (*registry.Served, bool, error) {
	return nil, false, errors.New("there is nothing to swap")
}

func TestSlowStorageOfOneExportKeepsNoOtherWaiting(t *testing.T) {
	storage := slow{export: export, begun: make(chan struct{}), release: make(chan struct{})}
	offering := &blueprint.Offering{Catalog: &registry.Catalog{}, Storage: storage, Loop: &loop{serving: map[v1alpha1.ExportKey]bool{}}}
	built := make(chan error)
	go func() { built <- offering.Serve(t.Context(), &engine.Program{Blueprint: "widgets", Export: export}) }()
	<-storage.begun
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	other := &engine.Program{Blueprint: "gadgets", Export: v1alpha1.ExportKey{Cluster: provider, Name: "gadgets.example.org"}}
	if err := offering.Serve(ctx, other); err != nil {
		t.Error(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	// The same export waits, no longer than its caller; then it turns out to be another blueprint's.
	second := &engine.Program{Blueprint: "others", Export: export}
	if err := offering.Serve(impatient, second); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("%v, want 503", err)
	}
	close(storage.release)
	if err := <-built; err != nil {
		t.Error(err)
	}
	if err := offering.Serve(t.Context(), second); !apierrors.IsConflict(err) {
		t.Errorf("%v, want Conflict", err)
	}
}
