package instance

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/compose"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

// Builder makes the storage of composed kinds. Safe for concurrent use; its fields must not be changed once it is used.
type Builder struct {
	// NewStore makes the store of an export's kind.
	NewStore   func(k *kind.Kind, export v1alpha1.ExportKey) (*kind.Store, error)
	Composer   Composer
	Namespaces Namespaces
	Locks      *registry.Locks
	// Timeout bounds one write, from waiting for the instance's lock to writing the last child. It has to
	// stay below the server's own limit for requests, so that what is wrong is answered rather than cut off.
	Timeout time.Duration
	// Limits bound what an instance may be.
	Limits budget.Limits
	// Nesting refuses instances that are nested in others without end.
	Nesting registry.Nesting
	// Reads tells the loop what a request is about to read that isn't the instance's own. May be nil.
	Reads func(key v1alpha1.InstanceKey, uid types.UID, references []engine.Reference)
	// Composed tells the loop what a request has written, so that it carries on from there. May be nil.
	Composed func(key v1alpha1.InstanceKey, result *compose.Result, err error)
}

// storeReadyTimeout bounds how long a kind's watch cache may take to read what is stored.
const storeReadyTimeout = 30 * time.Second

// Build makes the storage of a program's instances, and waits until it can be read.
func (b *Builder) Build(ctx context.Context, program *engine.Program) (*registry.Served, error) {
	k, err := kind.New(program.CRD)
	if err != nil {
		return nil, fmt.Errorf("kind %s: %w", program.CRD.Spec.Names.Kind, err)
	}
	store, err := b.NewStore(k, program.Export)
	if err != nil {
		return nil, fmt.Errorf("store of %s: %w", program.Export.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, storeReadyTimeout)
	defer cancel()
	if err := store.WaitReady(ctx); err != nil {
		store.Destroy()
		return nil, err
	}
	return served(program, newREST(b, store, program)), nil
}

// Swap replaces the program of what is served, if the kind stays the same; if not, ok is false.
// Requests in flight finish with the program they began with.
func (b *Builder) Swap(present *registry.Served, program *engine.Program) (swapped *registry.Served, ok bool, err error) {
	k, err := kind.New(program.CRD)
	if err != nil {
		return nil, false, fmt.Errorf("kind %s: %w", program.CRD.Spec.Names.Kind, err)
	}
	main, isInstance := present.Storage[present.Kind.GVR().Resource].(*REST)
	if !isInstance || !present.Kind.EqualSchema(k) {
		return nil, false, nil
	}
	main.Swap(program)
	return served(program, main), true, nil
}

func served(program *engine.Program, main *REST) *registry.Served {
	resource := main.kind.GVR().Resource
	return &registry.Served{
		Export:  program.Export,
		Kind:    main.kind,
		Program: program,
		Records: main.records,
		Gate:    &main.gate,
		Storage: map[string]rest.Storage{
			resource:             main,
			resource + "/status": registry.NewStatusREST(main),
		},
	}
}
