package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func TestReferencesMatch(t *testing.T) {
	named := Reference{Namespace: "ns", Name: "x"}
	clusterScoped := Reference{Name: "x"}
	everywhere := Reference{Selector: labels.SelectorFromSet(labels.Set{"a": "b"})}
	somewhere := Reference{Namespace: "ns", Selector: everywhere.Selector}
	for name, test := range map[string]struct {
		reference       Reference
		namespace, name string
		labels          labels.Labels
		want            bool
	}{
		"the object":                       {named, "ns", "x", nil, true},
		"another name":                     {named, "ns", "y", nil, false},
		"another namespace":                {named, "other", "x", nil, false},
		"a cluster-scoped object":          {clusterScoped, "", "x", nil, true},
		"no cluster-scoped one":            {clusterScoped, "ns", "x", nil, false},
		"labels, any namespace":            {everywhere, "ns", "x", labels.Set{"a": "b", "c": "d"}, true},
		"other labels":                     {everywhere, "ns", "x", labels.Set{"a": "c"}, false},
		"no labels":                        {everywhere, "ns", "x", labels.Set(nil), false},
		"labels that aren't known":         {everywhere, "ns", "x", nil, true},
		"labels, its namespace":            {somewhere, "ns", "x", labels.Set{"a": "b"}, true},
		"labels, another namespace":        {somewhere, "other", "x", labels.Set{"a": "b"}, false},
		"unknown labels, other namespaces": {somewhere, "other", "x", nil, false},
	} {
		if got := test.reference.Matches(test.namespace, test.name, test.labels); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestReferencesThatReadTheSameHaveOneKey(t *testing.T) {
	selector := func(text string) labels.Selector {
		parsed, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	base := Reference{Target: v1alpha1.TargetConsumer, GVR: configMaps, Selector: selector("a=b,c=d")}
	same := base
	same.Selector = selector("c=d,a=b")
	if base.Key() != same.Key() {
		t.Error("the order of labels makes a difference")
	}
	beta := configMaps
	beta.Version = "v1beta1"
	for name, other := range map[string]Reference{
		"another selector":  {Target: base.Target, GVR: base.GVR, Selector: selector("a=b")},
		"another namespace": {Target: base.Target, GVR: base.GVR, Selector: base.Selector, Namespace: "ns"},
		"another target":    {Target: v1alpha1.TargetHost, GVR: base.GVR, Selector: base.Selector},
		"another version":   {Target: base.Target, GVR: beta, Selector: base.Selector},
		"by name":           {Target: base.Target, GVR: base.GVR, Name: "x"},
	} {
		if base.Key() == other.Key() {
			t.Errorf("%s has the same key", name)
		}
	}
}
