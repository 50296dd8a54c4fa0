package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := unstructured.UnstructuredJSONScheme.Decode(raw, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return object.(*unstructured.Unstructured)
}

func TestUpToDate(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\n"
	for name, test := range map[string]struct {
		desired, live string
		want          bool
	}{
		"equal":                               {head + "data: {a: b}", head + "data: {a: b}", true},
		"fields of others":                    {head + "data: {a: b}", head + "data: {a: b, c: d}\nstatus: {x: y}", true},
		"a field changed":                     {head + "data: {a: b}", head + "data: {a: c}", false},
		"a field gone":                        {head + "data: {a: b}", head + "data: {}", false},
		"defaults inside list elements":       {head + "spec: {ports: [{port: 80}]}", head + "spec: {ports: [{port: 80, protocol: TCP}]}", true},
		"a list longer":                       {head + "spec: {ports: [{port: 80}]}", head + "spec: {ports: [{port: 80}, {port: 81}]}", false},
		"a list in another order":             {head + "spec: {l: [a, b]}", head + "spec: {l: [b, a]}", false},
		"numbers by value":                    {head + "spec: {n: 1}", head + "spec: {n: 1.0}", true},
		"numbers that differ":                 {head + "spec: {n: 1}", head + "spec: {n: 2}", false},
		"zero values that were dropped":       {head + "spec: {n: 0, b: false, s: '', m: {}, l: []}", head + "spec: {}", true},
		"null for what isn't there":           {head + "data: {a: null}", head + "data: {}", true},
		"null for what is there":              {head + "data: {a: null}", head + "data: {a: b}", false},
		"quantities where they are":           {head + "spec: {resources: {limits: {cpu: 1000m}}}", head + "spec: {resources: {limits: {cpu: '1'}}}", true},
		"no quantities elsewhere":             {head + "data: {cpu: 1000m}", head + "data: {cpu: '1'}", false},
		"status":                              {head + "status: {a: b}", head, true},
		"stringData of a Secret":              {"apiVersion: v1\nkind: Secret\nstringData: {a: b}", "apiVersion: v1\nkind: Secret\ndata: {a: Yg==}", true},
		"stringData of a Secret that changed": {"apiVersion: v1\nkind: Secret\nstringData: {a: b}", "apiVersion: v1\nkind: Secret\ndata: {a: Yw==}", false},
		"owners beside the wanted":            {head + "metadata: {ownerReferences: [{uid: u}]}", head + "metadata: {ownerReferences: [{uid: v}, {uid: u, controller: true}]}", true},
		"an owner gone":                       {head + "metadata: {ownerReferences: [{uid: u}]}", head + "metadata: {ownerReferences: [{uid: v}]}", false},
		"a label gone":                        {head + "metadata: {labels: {a: b}}", head + "metadata: {labels: {c: d}}", false},
		"read as another version":             {"apiVersion: x/v1\nkind: K", "apiVersion: x/v2\nkind: K", true},
		"a map where a text was":              {head + "data: {a: b}", head + "data: {a: {b: c}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			desired, live := fromYAML(t, test.desired), fromYAML(t, test.live)
			if got := UpToDate(desired, live); got != test.want {
				t.Errorf("got %v", got)
			}
			desired.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredHash: "new"})
			if UpToDate(desired, live) {
				t.Error("up to date although it was written from something else")
			}
		})
	}
}
