package blueprint

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/engine/kro"
)

// Values keeps bytes under names. *etcd.Values is one.
type Values interface {
	Get(ctx context.Context, name string) ([]byte, error)
	Put(ctx context.Context, name string, value []byte) error
	Delete(ctx context.Context, name string) error
}

const (
	// maxKept is well below what etcd takes in a request. The kinds of most blueprints take some ten kilobytes; one that
	// uses hundreds of large ones is not kept.
	maxKept = 1 << 20
	// maxUnpacked bounds what is unpacked of that: text of schemas shrinks to a tenth, not to a thousandth.
	maxUnpacked = 64 << 20
)

// kept remembers, beyond a restart, what each blueprint was compiled against last: with it, what doesn't compile any more
// can be compiled as it did. Losing it costs no more than that.
type kept struct {
	values  Values
	written sync.Map // v1alpha1.InstanceKey -> string: what was written by this process
}

// keptKinds is what is stored of one blueprint.
type keptKinds struct {
	SpecHash string     `json:"specHash"`
	Kinds    []keptKind `json:"kinds"`
}

// keptKind is a kind, and by which hash it was known.
type keptKind struct {
	Used       engine.UsedKind `json:"used"`
	Resource   string          `json:"resource"`
	Namespaced bool            `json:"namespaced"`
	Schema     *spec.Schema    `json:"schema,omitempty"`
}

func nameOf(key v1alpha1.InstanceKey) string { return path.Join(key.Cluster.String(), key.Name) }

// keep remembers what a blueprint that is offered was compiled against.
func (k *kept) keep(ctx context.Context, key v1alpha1.InstanceKey, compiled *Compiled) {
	program := compiled.Program
	version := program.SpecHash + program.Kinds.Hash()
	if last, _ := k.written.Load(key); compiled.kinds == nil || last == version {
		return
	}
	packed, err := pack(keptKinds{SpecHash: program.SpecHash, Kinds: compiled.kinds})
	if err == nil {
		err = k.values.Put(ctx, nameOf(key), packed)
	}
	if err != nil {
		klog.FromContext(ctx).Info("what the blueprint was compiled against is not remembered beyond a restart", "cluster", key.Cluster, "blueprint", key.Name, "err", err)
		return
	}
	k.written.Store(key, version)
}

// forget drops what is remembered of a blueprint that is gone.
func (k *kept) forget(ctx context.Context, key v1alpha1.InstanceKey) error {
	k.written.Delete(key)
	return k.values.Delete(ctx, nameOf(key))
}

// recall is the kinds that the blueprint's spec, as it is now, was compiled against last; nil if that isn't known.
func (k *kept) recall(ctx context.Context, key v1alpha1.InstanceKey, specHash string) (Schemas, error) {
	packed, err := k.values.Get(ctx, nameOf(key))
	if err != nil || packed == nil {
		return nil, err
	}
	found, err := unpack(packed)
	if err != nil || found.SpecHash != specHash {
		return nil, err
	}
	recalled := recalledKinds{}
	for _, kind := range found.Kinds {
		recalled[lookup{kind.Used.Target, kind.Used.GVK}] = kind
	}
	return recalled, nil
}

func pack(kinds keptKinds) ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(kinds); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	if packed.Len() > maxKept {
		return nil, fmt.Errorf("they take %d bytes, more than %d", packed.Len(), maxKept)
	}
	return packed.Bytes(), nil
}

func unpack(packed []byte) (kinds keptKinds, err error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return kinds, fmt.Errorf("kinds as they were: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(reader, maxUnpacked)).Decode(&kinds); err != nil {
		return kinds, fmt.Errorf("kinds as they were: %w", err)
	}
	return kinds, nil
}

// recalledKinds are kinds as they were.
type recalledKinds map[lookup]keptKind

// Resolve implements kro.Schemas.
func (r recalledKinds) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	kind, ok := r[lookup{target, gvk}]
	if !ok {
		return kro.Kind{}, &kro.KindNotFoundError{Target: target, GVK: gvk}
	}
	return kro.Kind{GVR: gvk.GroupVersion().WithResource(kind.Resource), Namespaced: kind.Namespaced, Schema: kind.Schema}, nil
}

// Kinds implements Schemas.
func (r recalledKinds) Kinds() engine.UsedKinds {
	var kinds engine.UsedKinds
	for _, kind := range r {
		kinds = append(kinds, kind.Used)
	}
	return kinds
}

// Unchanged implements Schemas. What was doesn't change, and says nothing about what is.
func (r recalledKinds) Unchanged(engine.UsedKinds, bool) (bool, error) {
	return false, errors.New("kinds as they were say nothing about what has changed")
}

// noting writes down the kinds of a compilation.
type noting struct {
	Schemas
	found map[lookup]kro.Kind
}

// Resolve implements kro.Schemas.
func (n *noting) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	kind, err := n.Schemas.Resolve(target, gvk)
	if err == nil {
		n.found[lookup{target, gvk}] = kind
	}
	return kind, err
}

// noted is what there is to keep.
func (n *noting) noted() []keptKind {
	kinds := make([]keptKind, 0, len(n.found))
	for _, used := range n.Kinds() {
		if kind, ok := n.found[lookup{used.Target, used.GVK}]; ok {
			kinds = append(kinds, keptKind{Used: used, Resource: kind.GVR.Resource, Namespaced: kind.Namespaced, Schema: kind.Schema})
		}
	}
	return kinds
}
