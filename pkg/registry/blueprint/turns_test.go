package blueprint

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine/kro"
)

// TestTheCoreIsGivenUpWhileAPlaneIsAsked compiles in one workspace while another one's plane takes its time.
func TestTheCoreIsGivenUpWhileAPlaneIsAsked(t *testing.T) {
	queue := newTurns(budget.Limits{budget.Compiles: 1}, budget.NewShare(1))
	first, err := queue.begin(t.Context(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	compiled := make(chan error, 1)
	go func() {
		second, err := queue.begin(t.Context(), "quick")
		if err == nil {
			second.end()
		}
		compiled <- err
	}()
	slow := &takingTurns{Schemas: waiting{until: compiled}, work: first}
	if _, err := slow.Resolve(v1alpha1.TargetProvider, schema.GroupVersionKind{}); err != nil {
		t.Errorf("the other one's: %v", err)
	}
	first.end()
	again, err := queue.begin(t.Context(), "quick")
	if err != nil {
		t.Fatal(err)
	}
	again.end()
}

// TestAPlaneThatTakesAllOfTheTimeIsToBlame has no time left to wait for a core when the plane gives up.
func TestAPlaneThatTakesAllOfTheTimeIsToBlame(t *testing.T) {
	queue := newTurns(budget.Limits{budget.Compiles: 1}, budget.NewShare(1))
	ctx, cancel := context.WithCancel(t.Context())
	work, err := queue.begin(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	defer work.end()
	hung := errors.New("the plane hangs")
	slow := &takingTurns{Schemas: outlasting{cancel: cancel, before: func() { occupy(t, queue) }, err: hung}, work: work}
	for range 2 {
		if _, err := slow.Resolve(v1alpha1.TargetHost, schema.GroupVersionKind{}); !errors.Is(err, hung) {
			t.Errorf("got %v, want what the plane says", err)
		}
	}
}

func occupy(t *testing.T, queue *turns) {
	t.Helper()
	other, err := queue.begin(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.end)
}

// outlasting is kinds that are asked for until there is no time left, and somebody else has the core.
type outlasting struct {
	Schemas
	cancel context.CancelFunc
	before func()
	err    error
}

// Resolve implements kro.Schemas.
func (o outlasting) Resolve(v1alpha1.Target, schema.GroupVersionKind) (kro.Kind, error) {
	o.before()
	o.cancel()
	return kro.Kind{}, o.err
}

// waiting is kinds that are known once the channel says so.
type waiting struct {
	Schemas
	until <-chan error
}

// Resolve implements kro.Schemas.
func (w waiting) Resolve(v1alpha1.Target, schema.GroupVersionKind) (kro.Kind, error) {
	return kro.Kind{}, <-w.until
}

func TestAWorkspaceCompilesOneBlueprintAtATime(t *testing.T) {
	queue := newTurns(budget.Limits{budget.Compiles: 10, budget.CompilesWaiting: 1}, budget.NewShare(10))
	first, err := queue.begin(t.Context(), "busy")
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan error, 2)
	for range 2 {
		go func() {
			work, err := queue.begin(t.Context(), "busy")
			next <- err
			if err == nil {
				work.end()
			}
		}()
	}
	// One waits; the other one is too many, whichever it is.
	err = <-next
	var over *budget.Over
	if !errors.As(err, &over) || over.Bound != budget.CompilesWaiting || !strings.Contains(err.Error(), "--max-compiles-waiting") {
		t.Errorf("one too many: %v", err)
	}
	other, err := queue.begin(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	other.end()
	first.end()
	if err := <-next; err != nil {
		t.Errorf("the one that waited: %v", err)
	}
}
