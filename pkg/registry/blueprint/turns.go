package blueprint

import (
	"context"
	"fmt"
	"math"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine/kro"
)

// turns is in what order blueprints are compiled. Compiling keeps a core busy for as long as the blueprint is large, and
// can't be interrupted: of a workspace's blueprints one is compiled at a time, of all as many as may be, and each when it is
// its turn among all that keeps a core busy.
type turns struct {
	limits     budget.Limits
	workspaces *budget.Turns
	compiles   *budget.Turns
	cores      *budget.Share
}

func newTurns(limits budget.Limits, cores *budget.Share) *turns {
	return &turns{
		limits:     limits,
		cores:      cores,
		workspaces: budget.NewTurns(math.MaxInt, 1, limits.Of(budget.CompilesWaiting)),
		compiles:   budget.NewTurns(limits.Of(budget.Compiles), 1, math.MaxInt),
	}
}

// begin waits for the workspace's turn and then for a core.
func (t *turns) begin(ctx context.Context, workspace logicalcluster.Name) (*compiling, error) {
	leave, err := t.workspaces.Enter(ctx, workspace.String())
	if err != nil {
		return nil, t.limits.Exceeded(budget.CompilesWaiting, "more were applied than there was time for")
	}
	c := &compiling{turns: t, ctx: ctx, workspace: workspace, leave: leave}
	if err := c.resume(); err != nil {
		leave()
		return nil, err
	}
	return c, nil
}

// compiling is one compilation's turn.
type compiling struct {
	turns     *turns
	ctx       context.Context // of the request, whose turn it is
	workspace logicalcluster.Name
	leave     func() // the workspace's turn
	pause     func() // gives up the core; nil while it has none
	// failed is why it could not go on.
	failed error
}

// resume takes a core.
func (c *compiling) resume() error {
	pause, err := c.turns.compiles.Enter(c.ctx, c.workspace.String())
	if err != nil {
		c.failed = c.turns.limits.Exceeded(budget.Compiles, fmt.Sprintf("this one has waited for %d seconds", c.turns.limits.Of(budget.CompileSeconds)))
		return c.failed
	}
	core, err := c.turns.cores.Enter(c.ctx, c.workspace.String())
	if err != nil {
		pause()
		c.failed = err
		return err
	}
	c.pause = func() { core(); pause() }
	return nil
}

// end gives up what it has.
func (c *compiling) end() {
	if c.pause != nil {
		c.pause()
		c.pause = nil
	}
	c.leave()
}

// takingTurns is the kinds of a compilation that gives its core up while it waits for a plane.
type takingTurns struct {
	Schemas
	work *compiling
}

// Resolve implements kro.Schemas.
func (t *takingTurns) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	if t.work.pause == nil {
		return kro.Kind{}, t.work.failed // it has lost its core
	}
	t.work.pause()
	t.work.pause = nil
	kind, err := t.Schemas.Resolve(target, gvk)
	if lost := t.work.resume(); lost != nil {
		if err != nil { // the plane has taken all of the time, or else there would have been some to wait in
			t.work.failed = err
		}
		return kro.Kind{}, t.work.failed
	}
	return kind, err
}
