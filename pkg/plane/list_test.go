package plane_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/plane/planetest"
)

func labelled(namespace, name string, set map[string]string, data map[string]any) *unstructured.Unstructured {
	object := configMap(namespace, name, data)
	object.SetLabels(set)
	return object
}

func namesOf(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetNamespace()+"/"+object.GetName())
	}
	return names
}

func TestListsWhatASelectorPicksInOrder(t *testing.T) {
	set, proxy, first := workspaces(t)
	second := namespace(t)
	if second < first {
		first, second = second, first
	}
	p := planeFor(t, set, v1alpha1.TargetConsumer)
	mark := map[string]string{"list": first}
	for _, object := range []*unstructured.Unstructured{
		labelled(second, "a", mark, nil), labelled(first, "b", mark, nil), labelled(first, "a", mark, map[string]any{"k": "v"}),
		labelled(first, "c", map[string]string{"list": "other"}, nil),
	} {
		if _, err := p.Create(t.Context(), configMaps, object, write); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Seen()
	selector := labels.SelectorFromSet(mark)
	for name, test := range map[string]struct {
		namespace string
		want      []string
	}{
		"all namespaces":    {"", []string{first + "/a", first + "/b", second + "/a"}},
		"one namespace":     {first, []string{first + "/a", first + "/b"}},
		"missing namespace": {"nowhere", nil},
	} {
		got, err := p.List(t.Context(), configMaps, test.namespace, selector, 10)
		if err != nil || !slices.Equal(namesOf(got), test.want) {
			t.Errorf("%s: %v, %v; want %v", name, namesOf(got), err, test.want)
		}
	}
	for _, seen := range proxy.Seen() {
		if !strings.HasPrefix(seen, "GET /services/apiexport/provider1/databases.example.org/clusters/consumer1/api/v1/") {
			t.Errorf("read at another address: %s", seen)
		}
	}
	got, err := p.List(t.Context(), configMaps, first, selector, 10)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].GetKind() != "ConfigMap" || got[0].GetAPIVersion() != "v1" || dataOf(t, got[0])["k"] != "v" || got[0].GetUID() == "" {
		t.Errorf("not the whole object: %v", got[0])
	}
}

func TestListIsBounded(t *testing.T) {
	set, _, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetProvider)
	large := strings.Repeat("x", 1<<20-1<<10)
	for i := range budget.SelectedBytes.Default>>20 + 1 {
		object := labelled(ns, fmt.Sprintf("large-%d", i), map[string]string{"size": "large"}, map[string]any{"text": large})
		if _, err := p.Create(t.Context(), configMaps, object, write); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if _, err := p.Create(t.Context(), configMaps, labelled(ns, fmt.Sprintf("s-%d", i), map[string]string{"size": "small"}, nil), write); err != nil {
			t.Fatal(err)
		}
	}
	small, big := labels.SelectorFromSet(labels.Set{"size": "small"}), labels.SelectorFromSet(labels.Set{"size": "large"})
	if got, err := p.List(t.Context(), configMaps, ns, small, 3); err != nil || len(got) != 3 {
		t.Errorf("as many as the limit: %v, %v", namesOf(got), err)
	}
	for name, test := range map[string]struct {
		selector labels.Selector
		limit    int
		bound    *budget.Bound
	}{
		"objects": {small, 2, budget.SelectedObjects},
		"bytes":   {big, 100, budget.SelectedBytes},
	} {
		_, err := p.List(t.Context(), configMaps, ns, test.selector, test.limit)
		var over *budget.Over
		if !errors.As(err, &over) || over.Bound != test.bound || errors.Is(err, plane.ErrNotReachable) {
			t.Errorf("%s: got %v, want the bound %s", name, err, test.bound.Name)
		}
		if want := fmt.Sprintf("configmaps that match %q in namespace %s: ", test.selector, ns); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want it to begin with %s", name, err, want)
		}
	}
}

func TestListErrorsAreTheServersOwn(t *testing.T) {
	set, _, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetHost)
	if _, err := p.List(t.Context(), configMaps, "a/b", labels.Everything(), 1); !apierrors.IsInvalid(err) {
		t.Errorf("a namespace that no path can hold: %v, want Invalid", err)
	}
	unserved := configMaps
	unserved.Resource = "unicorns"
	if _, err := p.List(t.Context(), unserved, ns, labels.Everything(), 1); !plane.IsNotServed(err) {
		t.Errorf("a kind that isn't served: %v", err)
	}
	proxy := planetest.NewWorkspaces(t, server.Admin)
	down, err := plane.New(plane.Config{Kcp: proxy.User(server.Admin), Endpoints: endpoint{proxy.URL + "/services/apiexport/p/e"}})
	if err != nil {
		t.Fatal(err)
	}
	lost := planeFor(t, down, v1alpha1.TargetConsumer)
	proxy.Close()
	if _, err := lost.List(t.Context(), configMaps, ns, labels.Everything(), 1); !errors.Is(err, plane.ErrNotReachable) {
		t.Errorf("a plane that is gone: %v, want ErrNotReachable", err)
	}
}
