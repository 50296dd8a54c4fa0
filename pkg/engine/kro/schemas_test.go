package kro

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	kroschema "github.com/kubernetes-sigs/kro/pkg/graph/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// testKinds serves the same kinds on every plane.
type testKinds map[schema.GroupVersionKind]Kind

func (k testKinds) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (Kind, error) {
	kind, ok := k[gvk]
	if !ok {
		return Kind{}, &KindNotFoundError{Target: target, GVK: gvk}
	}
	return kind, nil
}

var loadKinds = sync.OnceValues(func() (testKinds, error) {
	raw, err := os.ReadFile(filepath.Join("testdata", "kinds.yaml"))
	if err != nil {
		return nil, err
	}
	var entries []struct {
		APIVersion, Kind, Plural string
		Namespaced               bool
		Properties               map[string]json.RawMessage
	}
	if err := yaml.Unmarshal(raw, &entries); err != nil {
		return nil, err
	}
	kinds := make(testKinds)
	for _, entry := range entries {
		gv, err := schema.ParseGroupVersion(entry.APIVersion)
		if err != nil {
			return nil, err
		}
		object := &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
			"apiVersion": *spec.StringProperty(), "kind": *spec.StringProperty(), "metadata": kroschema.ObjectMetaSchema,
		}}}
		for name, raw := range entry.Properties {
			property := spec.Schema{}
			if err := json.Unmarshal(raw, &property); err != nil {
				return nil, err
			}
			object.Properties[name] = property
		}
		kinds[gv.WithKind(entry.Kind)] = Kind{GVR: gv.WithResource(entry.Plural), Namespaced: entry.Namespaced, Schema: object}
	}
	return kinds, nil
})

func kindsForTest(t testing.TB) testKinds {
	t.Helper()
	kinds, err := loadKinds()
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func blueprintFromYAML(t testing.TB, raw []byte) *v1alpha1.ResourceGraphDefinition {
	t.Helper()
	blueprint := &v1alpha1.ResourceGraphDefinition{}
	if err := yaml.UnmarshalStrict(raw, blueprint); err != nil {
		t.Fatal(err)
	}
	return blueprint
}
