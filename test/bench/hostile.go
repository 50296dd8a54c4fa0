package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"go.opendefense.cloud/krop/test/testbed"
)

//go:embed hostile.yaml
var hostileBlueprint string

//go:embed hostilebinding.yaml
var hostileBinding string

var (
	greedies   = schema.GroupVersionResource{Group: "bench.example.org", Version: "v1", Resource: "greedies"}
	blueprint  = schema.GroupVersionResource{Group: "krop.opendefense.cloud", Version: "v1alpha1", Resource: "resourcegraphdefinitions"}
	dryRunning = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
)

// rival is a provider with a workspace of its own, who applies blueprints that nobody could compile in time.
const rival testbed.User = "rival"

const (
	// greedyClients and rivalClients are how many clients each of them has at work all the time.
	greedyClients = 8
	rivalClients  = 4
)

// hostile is a consumer and a provider who try to get more than their share.
type hostile struct {
	consumer, provider dynamic.Interface
	instances          []*unstructured.Unstructured
	blueprints         []*unstructured.Unstructured

	asked atomic.Int64
	mutex sync.Mutex
	codes map[int32]int // how often each code was the answer
}

func (b *bench) prepareHostile(ctx context.Context) (*hostile, error) {
	if _, err := b.bed.Kubectl(testbed.Provider).Apply(ctx, hostileBlueprint); err != nil {
		return nil, err
	}
	if _, err := b.bed.Kubectl(testbed.Provider).Run(ctx, "wait", "--for=condition=Ready", "rgd/greedies", "--timeout=60s"); err != nil {
		return nil, err
	}
	greedy := b.bed.Kubectl(testbed.Consumer2)
	if _, err := greedy.Apply(ctx, hostileBinding); err != nil {
		return nil, err
	}
	if _, err := greedy.Run(ctx, "wait", "--for=condition=Ready", "apibinding/greedies", "--timeout=60s"); err != nil {
		return nil, err
	}
	if err := b.bed.AddUser(ctx, rival); err != nil {
		return nil, err
	}
	if err := b.bed.PrepareProvider(ctx, rival); err != nil {
		return nil, err
	}
	h := &hostile{instances: hostileInstances(), blueprints: hostileBlueprints(), codes: map[int32]int{}}
	for user, client := range map[testbed.User]*dynamic.Interface{testbed.Consumer2: &h.consumer, rival: &h.provider} {
		config, err := b.bed.Config(user)
		if err != nil {
			return nil, err
		}
		if *client, err = dynamic.NewForConfig(config); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// run tries everything over and over, until ctx ends.
func (h *hostile) run(ctx context.Context) {
	var clients sync.WaitGroup
	for i := range greedyClients {
		clients.Go(func() {
			for turn := i; ctx.Err() == nil; turn++ {
				h.attempt(ctx, h.consumer.Resource(greedies).Namespace(namespace), h.instances[turn%len(h.instances)])
			}
		})
	}
	for i := range rivalClients {
		clients.Go(func() {
			for turn := i; ctx.Err() == nil; turn++ {
				h.attempt(ctx, h.provider.Resource(blueprint), h.blueprints[turn%len(h.blueprints)])
			}
		})
	}
	clients.Wait()
}

// attempt is a dry run, so that what is accepted is composed as far as it gets, and nothing piles up.
func (h *hostile) attempt(ctx context.Context, at dynamic.ResourceInterface, object *unstructured.Unstructured) {
	_, err := at.Create(ctx, object, dryRunning)
	if ctx.Err() != nil {
		return
	}
	h.asked.Add(1)
	var code int32 = 201
	if err != nil {
		code = -1
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			code = status.Status().Code
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.codes[code]++
}

func hostileInstances() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for what, spec := range map[string]map[string]any{
		"parts":   {"list": texts(20_000)},
		"product": {},
		"loops":   {"list": texts(2000)},
		"range":   {"count": int64(1_000_000_000)},
		"pattern": {"text": strings.Repeat("a", 700<<10)},
		"large":   {"text": strings.Repeat("a", 400<<10)},
		"list":    {"list": texts(100_000)},
		"text":    {"text": strings.Repeat("a", 1<<20)},
		"body":    {"text": strings.Repeat("a", 3<<20)},
		"nested":  {"any": nested(5000)},
		"work":    {},
	} {
		spec["what"] = what
		all = append(all, object(greedies.GroupVersion().String(), "Greedy", what, "spec", spec))
	}
	return all
}

func hostileBlueprints() []*unstructured.Unstructured {
	resources := func(count int, data func(i int) string) []any {
		all := make([]any, count)
		for i := range all {
			id := fmt.Sprintf("c%d", i)
			all[i] = map[string]any{"id": id, "template": map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": id}, "data": map[string]any{"x": data(i)},
			}}
		}
		return all
	}
	plain := func(int) string { return "x" }
	var all []*unstructured.Unstructured
	for name, list := range map[string][]any{
		"resources": resources(5000, plain),
		// As many as there may be, each with an expression as long as it may be as a whole.
		"long": resources(50, func(int) string { return "${'a'" + strings.Repeat("+'a'", 1900) + "}" }),
		"chain": resources(300, func(i int) string {
			if i == 0 {
				return "x"
			}
			return fmt.Sprintf("${c%d.data.x + c%d.data.x}", i-1, i-1)
		}),
		"literal": resources(1, func(int) string { return "${'" + strings.Repeat("a", 1<<20) + "'}" }),
		"wrong":   resources(300, func(int) string { return "${schema.spec.nothing + 1}" }),
	} {
		all = append(all, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "krop.opendefense.cloud/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"schema":    map[string]any{"group": "rival.example.org", "apiVersion": "v1", "kind": "Rival", "spec": map[string]any{"size": "integer"}},
				"resources": list,
			},
		}})
	}
	return all
}

func texts(count int) []any {
	list := make([]any, count)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return list
}

func nested(levels int) any {
	value := any("x")
	for range levels {
		value = map[string]any{"a": value}
	}
	return value
}
