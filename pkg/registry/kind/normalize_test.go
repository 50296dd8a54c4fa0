package kind

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestNormalizePrunesAndDefaultsStatus(t *testing.T) {
	k := newKind(t, definition(t, newGroup()))
	object := widget(k, "a", with("x", "status", "unknown"), with("done", "status", "phase"))
	if problems := k.Normalize(t.Context(), object, nil); len(problems) > 0 {
		t.Fatal(problems)
	}
	if valueAt(t, object, "status", "unknown") != nil || valueAt(t, object, "status", "ready") != false || valueAt(t, object, "status", "phase") != "done" {
		t.Errorf("status %v", object.Object["status"])
	}
	if object.GetName() != "a" || object.GroupVersionKind() != k.GVK() {
		t.Errorf("metadata was pruned: %v", object.Object)
	}
}

func TestNormalizeNamesWhatDoesNotFit(t *testing.T) {
	k := newKind(t, definition(t, newGroup()))
	object := widget(k, "a", with(int64(1), "status", "phase"))
	problems := k.Normalize(t.Context(), object, nil)
	if len(problems) == 0 || problems[0].Field != "status.phase" {
		t.Errorf("problems %v", problems)
	}
}

func TestNormalizeSeesOldValuesAndLetsOldFaultsPass(t *testing.T) {
	group := newGroup()
	loose := newKind(t, definition(t, group))
	strict := newKind(t, definition(t, group, func(crd *apiextensionsv1.CustomResourceDefinition) {
		color := root(crd).Properties["spec"].Properties["color"]
		color.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"green"`)}}
		root(crd).Properties["spec"].Properties["color"] = color
	}))
	old := decoded(loose, "a")
	old.SetResourceVersion("1")

	object := old.DeepCopy()
	with("done", "status", "phase")(object)
	if problems := strict.Normalize(t.Context(), object, old); len(problems) > 0 {
		t.Errorf("a fault that was there before: %v", problems)
	}
	with("blue", "spec", "color")(object)
	if problems := loose.Normalize(t.Context(), object, old); len(problems) != 1 || problems[0].Field != "spec" {
		t.Errorf("a rule about the old value: %v", problems)
	}
}
