package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// identity is all that a child's name may depend on.
type identity struct {
	provider, blueprint, consumer, namespace, instance, node, name string
}

func (i identity) childName() string {
	program := &Program{Blueprint: i.blueprint, Export: v1alpha1.ExportKey{Cluster: logicalcluster.Name(i.provider), Name: "x"}}
	instance := &unstructured.Unstructured{Object: map[string]any{}}
	instance.SetNamespace(i.namespace)
	instance.SetName(i.instance)
	naming := naming{program: program, consumer: logicalcluster.Name(i.consumer), instance: instance}
	return naming.child(&Node{ID: v1alpha1.NodeID(i.node), Target: v1alpha1.TargetHost}, i.name)
}

func TestNamesOnSharedPlanesDependOnTheWholeIdentity(t *testing.T) {
	base := identity{"p", "b", "c", "ns", "i", "n", "name"}
	first := base.childName()
	if again := base.childName(); again != first {
		t.Fatalf("a name changes from %s to %s", first, again)
	}
	seen := map[string]identity{first: base}
	for _, change := range []func(*identity){
		func(i *identity) { i.provider = "q" }, func(i *identity) { i.blueprint = "q" }, func(i *identity) { i.consumer = "q" },
		func(i *identity) { i.namespace = "q" }, func(i *identity) { i.instance = "q" }, func(i *identity) { i.node = "q" },
		func(i *identity) { i.name = "q" },
		// The same letters, divided differently.
		func(i *identity) { i.namespace, i.instance = "n", "si" },
	} {
		other := base
		change(&other)
		name := other.childName()
		if clash, taken := seen[name]; taken {
			t.Errorf("%+v and %+v share %s", other, clash, name)
		}
		seen[name] = other
	}
}

func TestNamesOnSharedPlanesAreValid(t *testing.T) {
	for _, name := range []string{"a", "web", strings.Repeat("a", 63), strings.Repeat("a", 300), "with.dots.in-it", "ends-", strings.Repeat("a", 48) + "-." + "b", "日本"} {
		i := identity{"p", "b", "c", "ns", "i", "n", name}
		got := i.childName()
		if len(got) > maxNameLength || len(validation.IsDNS1123Subdomain(got)) > 0 && name != "日本" {
			t.Errorf("%q becomes %q", name, got)
		}
		if prefix := name[:min(len(name), 10)]; name != "日本" && !strings.HasPrefix(got, strings.TrimRight(prefix, "-.")) {
			t.Errorf("%q becomes %q, which doesn't begin like it", name, got)
		}
	}
}

func TestBlueprintLabelIsAValidLabelValue(t *testing.T) {
	if got := BlueprintLabel("database"); got != "database" {
		t.Errorf("got %q", got)
	}
	long, other := BlueprintLabel(strings.Repeat("a", 100)+"1"), BlueprintLabel(strings.Repeat("a", 100)+"2")
	if long == other || len(validation.IsValidLabelValue(long)) > 0 {
		t.Errorf("got %q and %q", long, other)
	}
}

func labelled(labels map[string]string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetLabels(labels)
	return object
}

func TestOwnershipNeedsBothMarks(t *testing.T) {
	for name, test := range map[string]struct {
		labels        map[string]string
		owned, marked bool
	}{
		"both":             {map[string]string{v1alpha1.LabelInstanceUID: "u", v1alpha1.LabelConsumerCluster: "c"}, true, true},
		"another consumer": {map[string]string{v1alpha1.LabelInstanceUID: "u", v1alpha1.LabelConsumerCluster: "d"}, false, true},
		"another instance": {map[string]string{v1alpha1.LabelInstanceUID: "v", v1alpha1.LabelConsumerCluster: "c"}, false, true},
		"only one":         {map[string]string{v1alpha1.LabelInstanceUID: "u"}, false, true},
		"none":             {map[string]string{"app": "x"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OwnedBy(labelled(test.labels), "u", "c"); got != test.owned {
				t.Errorf("owned: %v", got)
			}
			if got := Marked(labelled(test.labels)); got != test.marked {
				t.Errorf("marked: %v", got)
			}
		})
	}
	if OwnedBy(labelled(map[string]string{v1alpha1.LabelInstanceUID: "", v1alpha1.LabelConsumerCluster: "c"}), "", "c") {
		t.Error("an instance without a UID owns nothing")
	}
}

func TestRecordedTellsObjectsOfOneNameApart(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetUID("second")
	if Recorded(v1alpha1.ComposedResource{UID: "first"}, object) {
		t.Error("another object is taken for the recorded one")
	}
	if !Recorded(v1alpha1.ComposedResource{UID: "second"}, object) || !Recorded(v1alpha1.ComposedResource{}, object) {
		t.Error("the recorded object isn't recognised")
	}
}

func TestUnmarkedLeavesOthersMarks(t *testing.T) {
	object := labelled(map[string]string{v1alpha1.LabelInstanceUID: "u", v1alpha1.LabelNode: "n", "app": "x"})
	object.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredHash: "h", "note": "y"})
	object.SetOwnerReferences([]metav1.OwnerReference{{UID: "u"}, {UID: "other"}})
	got := Unmarked(object, "u")
	if diff := cmp.Diff(map[string]string{"app": "x"}, got.GetLabels()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "y"}, got.GetAnnotations()); diff != "" {
		t.Error(diff)
	}
	if owners := got.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "other" {
		t.Errorf("owners: %v", owners)
	}
	if !Marked(object) {
		t.Error("the original was changed")
	}
}

func TestDesiredHashIgnoresItselfAndKindsOfNumbers(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"n": int64(1)}}}
	hash := DesiredHash(object)
	hashed := object.DeepCopy()
	hashed.SetAnnotations(map[string]string{v1alpha1.AnnotationDesiredHash: hash})
	if got := DesiredHash(hashed); got != hash {
		t.Errorf("%s with the annotation, %s without", got, hash)
	}
	if hashed.GetAnnotations()[v1alpha1.AnnotationDesiredHash] != hash {
		t.Error("hashing changed the object")
	}
	floating := object.DeepCopy()
	floating.Object["spec"] = map[string]any{"n": float64(1)}
	if got := DesiredHash(floating); got != hash {
		t.Errorf("%s for a float, %s for an integer", got, hash)
	}
	floating.Object["spec"] = map[string]any{"n": int64(2)}
	if got := DesiredHash(floating); got == hash {
		t.Error("another object has the same hash")
	}
}

func TestSpecHashIsOfWhatTheSpecSays(t *testing.T) {
	spec := func(template string, change func(*v1alpha1.Resource)) v1alpha1.ResourceGraphDefinitionSpec {
		resource := v1alpha1.Resource{ID: "a", Template: runtime.RawExtension{Raw: []byte(template)}}
		if change != nil {
			change(&resource)
		}
		return v1alpha1.ResourceGraphDefinitionSpec{Schema: &v1alpha1.Schema{Kind: "K", APIVersion: "v1"}, Resources: []v1alpha1.Resource{resource}}
	}
	base := SpecHash(spec(`{"a":1,"b":2}`, nil))
	if len(base) != 16 || strings.Trim(base, "0123456789abcdef") != "" {
		t.Errorf("%q isn't 16 hexadecimal digits", base)
	}
	if got := SpecHash(spec(`{"b": 2, "a": 1}`, nil)); got != base {
		t.Error("the order of keys counts")
	}
	if got := SpecHash(spec(`{"a":1,"b":2}`, func(r *v1alpha1.Resource) { r.Target = v1alpha1.TargetConsumer })); got != base {
		t.Error("a default counts")
	}
	if got := SpecHash(spec(`{"a":1,"b":2}`, func(r *v1alpha1.Resource) { r.Target = v1alpha1.TargetProvider })); got == base {
		t.Error("the target doesn't count")
	}
	if got := SpecHash(spec(`{"a":1,"b":3}`, nil)); got == base {
		t.Error("the template doesn't count")
	}
}

func TestOnlyChildrenOnTheHostCarryTheInstallation(t *testing.T) {
	naming := naming{program: &Program{Blueprint: "b", Installation: "krop-1"}, consumer: "c", instance: labelled(nil)}
	for _, target := range []v1alpha1.Target{v1alpha1.TargetConsumer, v1alpha1.TargetProvider, v1alpha1.TargetHost} {
		object := labelled(nil)
		naming.mark(&Node{ID: "n", Target: target}, object)
		if got := object.GetLabels()[v1alpha1.LabelInstallation]; (got == "krop-1") != (target == v1alpha1.TargetHost) {
			t.Errorf("%s: %q", target, got)
		}
	}
}
