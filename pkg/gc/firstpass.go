package gc

import (
	"sync"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// firstPass knows when every blueprint that was stored at start has been tried once. Safe for
// concurrent use.
type firstPass struct {
	mutex   sync.Mutex
	missing map[v1alpha1.InstanceKey]struct{}
	listed  bool
	done    func() // called once, then nil
}

// expect counts a blueprint in, while the first list is being handed out.
func (p *firstPass) expect(key v1alpha1.InstanceKey) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.listed {
		p.missing[key] = struct{}{}
	}
}

// complete says that the first list has been handed out.
func (p *firstPass) complete() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.listed = true
	p.finish()
}

// tried counts a blueprint out.
func (p *firstPass) tried(key v1alpha1.InstanceKey) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.missing, key)
	p.finish()
}

func (p *firstPass) finish() {
	if !p.listed || len(p.missing) > 0 || p.done == nil {
		return
	}
	p.done()
	p.done = nil
}
