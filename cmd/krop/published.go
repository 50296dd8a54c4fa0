package main

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/publish"
)

// published watches what krop has published, so that what somebody takes away or changes is repaired at
// once and not at the next resync. Safe for concurrent use.
type published struct {
	sources plane.Sources

	mutex   sync.Mutex
	changed func(export v1alpha1.ExportKey, blueprint string) // nil before blueprints are loaded
	watches map[v1alpha1.ExportKey]context.CancelFunc
}

func newPublished(sources plane.Sources) *published {
	return &published{sources: sources, watches: map[v1alpha1.ExportKey]context.CancelFunc{}}
}

// subscribe has changed called, which must return quickly, for every change from now on.
func (p *published) subscribe(changed func(v1alpha1.ExportKey, string)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.changed = changed
}

// watch starts to watch what a blueprint has published. Watching it again changes nothing.
func (p *published) watch(export v1alpha1.ExportKey, blueprint string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if _, ok := p.watches[export]; ok {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.watches[export] = cancel
	for _, resource := range publish.Watched() {
		go p.follow(ctx, export, blueprint, resource)
	}
}

func (p *published) follow(ctx context.Context, export v1alpha1.ExportKey, blueprint string, resource schema.GroupVersionResource) {
	label := engine.BlueprintLabel(blueprint)
	err := p.sources.Watch(ctx, v1alpha1.TargetProvider, export, label, resource, func(event watch.EventType, object *unstructured.Unstructured) {
		if object.GetName() != export.Name || event != watch.Deleted && event != watch.Modified {
			return
		}
		p.mutex.Lock()
		changed := p.changed
		p.mutex.Unlock()
		if changed != nil {
			changed(export, blueprint)
		}
	})
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "published objects can't be watched", "export", export.String(), "resource", resource.String())
	}
}

// unwatch ends it.
func (p *published) unwatch(export v1alpha1.ExportKey) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if cancel, ok := p.watches[export]; ok {
		cancel()
		delete(p.watches, export)
	}
}

// close ends all watches.
func (p *published) close() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for export, cancel := range p.watches {
		cancel()
		delete(p.watches, export)
	}
}
