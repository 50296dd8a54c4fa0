package instance_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/registry/instance"
)

// answers is a consumer's plane that gives one answer after the other, and repeats the last.
type answers struct {
	plane.Plane
	list []error
}

func (a *answers) For(context.Context, v1alpha1.Target, v1alpha1.ExportKey, logicalcluster.Name) (plane.Plane, error) {
	return a, nil
}

func (a *answers) Get(context.Context, plane.Object) (*unstructured.Unstructured, error) {
	err := a.list[0]
	if len(a.list) > 1 {
		a.list = a.list[1:]
	}
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: map[string]any{}}, nil
}

func TestOnlyANamespaceThatIsSaidNotToExistTwiceIsMissing(t *testing.T) {
	namespaces := schema.GroupResource{Resource: "namespaces"}
	absent := apierrors.NewNotFound(namespaces, "team")
	notServed := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", namespaces, "team", "404 page not found", 0, true)
	ok := func(err error) bool { return err == nil }
	for name, c := range map[string]struct {
		answers []error
		want    func(error) bool
	}{
		"said twice":               {[]error{absent, absent}, apierrors.IsNotFound},
		"there the second time":    {[]error{absent, nil}, ok},
		"not served":               {[]error{notServed}, apierrors.IsServiceUnavailable},
		"served no more":           {[]error{absent, notServed}, apierrors.IsServiceUnavailable},
		"the binding is not found": {[]error{apierrors.NewNotFound(schema.GroupResource{Group: "apis.kcp.io", Resource: "apibindings"}, "team")}, apierrors.IsServiceUnavailable},
		"not claimed":              {[]error{apierrors.NewForbidden(namespaces, "team", errors.New("no claim"))}, ok},
	} {
		checker := instance.PlaneNamespaces{Planes: &answers{list: c.answers}}
		err := checker.Check(t.Context(), export, consumer, "team")
		if !c.want(err) {
			t.Errorf("%s: got %v", name, err)
		}
		if seconds, retry := apierrors.SuggestsClientDelay(err); apierrors.IsServiceUnavailable(err) && (!retry || seconds == 0) {
			t.Errorf("%s: no word of when to try again", name)
		}
	}
}

func TestNamespaceThatCanNotBeReachedIsToldWithoutAddress(t *testing.T) {
	checker := instance.PlaneNamespaces{Planes: &answers{list: []error{errors.New(`Get "https://127.0.0.1:6443/x": dial tcp`)}}}
	if err := checker.Check(t.Context(), export, consumer, "team"); !apierrors.IsServiceUnavailable(err) || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("got %v", err)
	}
}
