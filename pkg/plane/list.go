package plane

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"go.opendefense.cloud/krop/pkg/budget"
)

// List implements Plane.
func (s *server) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, selector labels.Selector, limit int) ([]*unstructured.Unstructured, error) {
	if problems := namespaceProblems(namespace); len(problems) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: gvr.Group, Kind: gvr.Resource}, "", problems)
	}
	reading := &listing{server: s, gvr: gvr, namespace: namespace, selector: selector, limit: limit, room: budget.SelectedBytes.Default}
	for {
		if err := reading.page(ctx); err != nil {
			return nil, err
		}
		if reading.next == "" {
			break
		}
	}
	slices.SortFunc(reading.found, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return reading.found, nil
}

// listing is one List under way. A server may answer in pages even where all would fit into one, and
// say that there is more where nothing more matches.
type listing struct {
	*server
	gvr       schema.GroupVersionResource
	namespace string
	selector  labels.Selector
	limit     int

	found []*unstructured.Unstructured
	room  int
	next  string
}

func (l *listing) page(ctx context.Context) error {
	raw, err := l.fetch(ctx)
	if err != nil {
		return err
	}
	if l.room -= len(raw); l.room < 0 {
		return l.exceeds(budget.SelectedBytes, budget.SelectedBytes.Default)
	}
	if err := l.take(raw); err != nil {
		return err
	}
	if len(l.found) > l.limit {
		return l.exceeds(budget.SelectedObjects, l.limit)
	}
	return nil
}

// fetch reads one page, or as much of it as shows that it is too large. A client would take it whole.
func (l *listing) fetch(ctx context.Context) (raw []byte, err error) {
	request := l.discovery.Get().AbsPath(l.path()...).SetHeader("Accept", runtime.ContentTypeJSON).
		SpecificallyVersionedParams(&metav1.ListOptions{LabelSelector: l.selector.String(), Limit: int64(l.limit) + 1, Continue: l.next}, scheme.ParameterCodec, metav1.Unversioned)
	err = l.within(ctx, func(ctx context.Context) error {
		body, err := request.Stream(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		raw, err = io.ReadAll(io.LimitReader(body, int64(l.room)+1))
		return err
	})
	return raw, err
}

func (l *listing) take(raw []byte) error {
	decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, raw)
	if err != nil {
		return fmt.Errorf("list of %s: %w", l.gvr.GroupResource(), err)
	}
	list, ok := decoded.(*unstructured.UnstructuredList)
	if !ok {
		return fmt.Errorf("list of %s: the answer is no list", l.gvr.GroupResource())
	}
	for i := range list.Items {
		l.found = append(l.found, &list.Items[i])
	}
	l.next = list.GetContinue()
	return nil
}

func (l *listing) path() []string {
	path := []string{"/" + groupVersionPath(l.gvr.GroupVersion())}
	if l.namespace != "" {
		path = append(path, "namespaces", l.namespace)
	}
	return append(path, l.gvr.Resource)
}

// exceeds is the error of a list that was given up, with what was asked for and the bound.
func (l *listing) exceeds(bound *budget.Bound, limit int) error {
	picked := "all " + l.gvr.GroupResource().String()
	if !l.selector.Empty() {
		picked = fmt.Sprintf("%s that match %q", l.gvr.GroupResource(), l.selector)
	}
	if l.namespace != "" {
		picked += " in namespace " + l.namespace
	}
	return fmt.Errorf("%s: %w", picked, budget.Limits{bound: limit}.More(bound))
}
