package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAuthoringOfAKind shows what a blueprint says of the kind that consumers use.
func TestAuthoringOfAKind(t *testing.T) {
	provider, consumer := theAuthors(t)
	created := consumer.makes(samples, instance("Sample", "whole", map[string]any{"title": "two words", "ports": []any{map[string]any{"name": "http"}}}))

	t.Run("group, version, kind and scope", func(t *testing.T) {
		consumer.t = t
		listed := consumer.kubectl("api-resources", "--api-group="+authoringGroup, "--no-headers")
		for _, want := range []string{"samples smp authoring.example.org/v1alpha1 true Sample", "estates authoring.example.org/v1alpha1 false Estate"} {
			if !slices.ContainsFunc(strings.Split(listed, "\n"), func(line string) bool { return strings.Join(strings.Fields(line), " ") == want }) {
				t.Errorf("%q is not among\n%s", want, listed)
			}
		}
	})
	t.Run("short names and categories", func(t *testing.T) {
		consumer.t = t
		for _, name := range []string{"smp", "authored"} {
			if got := consumer.kubectl("get", name, "-o", "name"); !strings.Contains(got, "sample.authoring.example.org/whole") {
				t.Errorf("kubectl get %s shows %q", name, got)
			}
		}
	})
	t.Run("metadata of what is published", func(t *testing.T) {
		provider.t = t
		schemas := provider.kubectl("get", "apiresourceschemas", "-l", "example.org/team=authors", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.metadata.annotations.example\.org/contact}{"\n"}{end}`)
		if !strings.Contains(schemas, "samples.authoring.example.org authors@example.org") {
			t.Errorf("schemas with the label are %q", schemas)
		}
	})
	t.Run("description in kubectl explain", func(t *testing.T) {
		consumer.t = t
		if got := consumer.kubectl("explain", "samples.spec.title"); !strings.Contains(got, "What people call it.") || !strings.Contains(got, "<string>") {
			t.Errorf("kubectl explain says %s", got)
		}
	})
	t.Run("types", func(t *testing.T) {
		must(t, fieldIs(created, []any{map[string]any{"name": "http", "number": int64(80), "tags": []any{}}}, "spec", "ports"))
		must(t, fieldIs(created, "low", "spec", "level"))
	})
	t.Run("printer columns", func(t *testing.T) { columns(t, consumer) })
	t.Run("default printer columns", func(t *testing.T) {
		consumer.t = t
		consumer.makes(phrases, instance("Phrase", "columned", map[string]any{}))
		if got := fieldsOf(consumer.kubectl("get", "phrases", "columned")); !slices.Equal(got[0], []string{"NAME", "STATE", "READY", "AGE"}) || got[1][1] != "ACTIVE" || got[1][2] != "True" {
			t.Errorf("kubectl get shows %v", got)
		}
	})
	t.Run("status has the types of its expressions", func(t *testing.T) { statusOf(t, consumer, created) })
	t.Run("fields that a child lacks stay out of status", func(t *testing.T) {
		must(t, fieldIs(created, nil, "status", "late"))
	})
	t.Run("conditions of the author's", func(t *testing.T) { conditionsOf(t, consumer, created) })
}

// columns are those of the blueprint, the last one for those who ask for more.
func columns(t *testing.T, consumer actor) {
	consumer.t = t
	want := []string{"NAME", "TITLE", "SIZE", "TITLED"}
	got := fieldsOf(consumer.kubectl("get", "samples", "whole"))
	if !slices.Equal(got[0], want) || !slices.Equal(got[1], []string{"whole", "two", "words", "3", "True"}) {
		t.Errorf("kubectl get shows %v", got)
	}
	got = fieldsOf(consumer.kubectl("get", "samples", "whole", "-o", "wide"))
	if !slices.Equal(got[0], append(want, "WORDS")) || !slices.Equal(got[1], []string{"whole", "two", "words", "3", "True", "two"}) {
		t.Errorf("kubectl get -o wide shows %v", got)
	}
}

// fieldsOf are the words of each line of a table.
func fieldsOf(table string) [][]string {
	var out [][]string
	for line := range strings.Lines(table) {
		out = append(out, strings.Fields(line))
	}
	return out
}

// statusOf checks what expressions gave, and what kubectl explain says of their types.
func statusOf(t *testing.T, consumer actor, created *unstructured.Unstructured) {
	consumer.t = t
	for field, want := range map[string]struct {
		value any
		as    string
	}{
		"title": {"two words", "<string>"}, "size": {int64(3), "<integer>"}, "share": {0.5, "<number>"}, "big": {false, "<boolean>"},
		"words": {[]any{"two", "words"}, "<[]string>"}, "list": {[]any{"two words", "fixed safe"}, "<[]string>"},
		"nested": {map[string]any{"text": "whole: 3"}, "<Object>"},
	} {
		if err := fieldIs(created, want.value, "status", field); err != nil {
			t.Error(err)
		}
		if got := consumer.kubectl("explain", "samples.status."+field); !strings.Contains(got, want.as) {
			t.Errorf("kubectl explain of %s says %s, want %s", field, got, want.as)
		}
	}
	must(t, fieldIs(created, "two words", "status", "data", "title"))
}

// conditionsOf checks conditions one by one, from a list, copied from krop's own, and awaited ones.
func conditionsOf(t *testing.T, consumer actor, created *unstructured.Unstructured) {
	consumer.t = t
	for kind, want := range map[string]string{"Titled": "True", "One": "Unknown", "Two": "Unknown"} {
		must(t, conditionIs(created, kind, want))
	}
	if err := conditionIs(created, "Late", "False"); err == nil {
		t.Error("a condition is there although what it reads isn't")
	}
	consumer.kubectl("wait", "--for=condition=Titled", "sample/whole", "--timeout=30s")
	consumer.patch(configMaps, "whole", `{"data":{"late":"yes"}}`)
	eventually(t, "the condition appears with what it reads", func() error {
		return conditionIs(consumer.get(samples, "whole"), "Late", "True")
	})
	eventually(t, "krop's own is mirrored", func() error {
		sample := consumer.get(samples, "whole")
		if err := conditionIs(sample, "Ready", "True"); err != nil {
			return err
		}
		return conditionIs(sample, "Mirror", "True")
	})
}

// TestAuthoringOfAClusterScopedKind has instances without a namespace own children in namespaces.
func TestAuthoringOfAClusterScopedKind(t *testing.T) {
	provider, consumer := theAuthors(t)
	created := consumer.makes(estates, instance("Estate", "manor", map[string]any{"space": "manor-house"}))
	inside := consumer.Resource(configMaps).Namespace("manor-house")

	t.Run("a namespace with an object in it can't be tried before", func(t *testing.T) {
		answer, err := consumer.tries(estates, instance("Estate", "lodge", map[string]any{"space": "lodge-house"}))
		must(t, err)
		if got := row(answer, "inside")["state"]; got != "Unverified" {
			t.Errorf("the object in a namespace that isn't there is %v, want Unverified", got)
		}
	})
	t.Run("it is created with its namespace", func(t *testing.T) {
		must(t, fieldIs(created, "manor-house", "status", "space"))
		found, err := inside.Get(t.Context(), "inside", metav1.GetOptions{})
		must(t, err)
		must(t, fieldIs(found, "manor", "data", "of"))
		if owners := found.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != created.GetUID() {
			t.Errorf("its owners are %v", owners)
		}
	})
	t.Run("scope is what requests have to respect", func(t *testing.T) {
		_, err := consumer.in(estates).Get(t.Context(), "manor", metav1.GetOptions{})
		if err == nil {
			t.Error("a cluster-scoped instance is served in a namespace")
		}
	})
	t.Run("the definition of a kind", func(t *testing.T) { definitions(t, provider, consumer) })
	t.Run("it is taken down with its namespace", func(t *testing.T) {
		must(t, consumer.Resource(estates).Delete(t.Context(), "manor", metav1.DeleteOptions{}))
		eventually(t, "instance and namespace are gone", func() error {
			if left, err := consumer.Resource(namespaces).List(t.Context(), nodeSelector(created, "")); err != nil || len(left.Items) > 0 {
				return fmt.Errorf("%d namespaces are left (%v)", len(left.Items), err)
			}
			return consumer.gone(estates, "manor")
		})
	})
}

// gone says what is wrong unless a cluster-scoped object is not there.
func (a actor) gone(resource resourceName, name string) error {
	list, err := a.Resource(resource).List(a.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err == nil && len(list.Items) > 0 {
		return fmt.Errorf("%s %s is there", resource.Resource, name)
	}
	return err
}

// definitions makes a CustomResourceDefinition by an instance, and then offers what is made of that kind, a part of
// which has no schema.
func definitions(t *testing.T, provider, consumer actor) {
	provider.t, consumer.t = t, t
	defining := consumer.makes(estates, instance("Estate", "works", map[string]any{"space": "works-yard", "defines": true}))
	eventually(t, "the kind is established", func() error {
		found, err := consumer.Resource(estates).Get(t.Context(), "works", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return conditionIs(found, "Ready", "True")
	})
	must(t, fieldIs(defining, "works-yard", "status", "space"))
	eventually(t, "a blueprint can use the kind", func() error {
		_, err := bed.Kubectl(provider.user).Run(t.Context(), "apply", "-f", testdata("gadgets.yaml"))
		return err
	})
	must(t, bindOfferings(t.Context(), consumer.user, "gadgets"))
	gadget := consumer.makes(gadgets, instance("Gadget", "spinner", map[string]any{"free": map[string]any{"color": "red", "deep": []any{int64(1), "two"}}}))
	widgets := resourceName{Group: "kinds.example.org", Version: "v1", Resource: "widgets"}
	made := provider.child(widgets, gadget, "widget")
	must(t, fieldIs(made, map[string]any{
		"fixed": map[string]any{"list": []any{int64(1), true, "text"}}, "name": "spinner",
		"paint": map[string]any{"color": "red", "deep": []any{int64(1), "two"}},
	}, "spec", "config"))
	must(t, fieldIs(gadget, "red", "status", "color"))
	must(t, fieldIs(gadget, nil, "status", "unknown"))

	consumer.delete(gadgets, "spinner")
	eventually(t, "what was made of the kind is gone", func() error { return consumer.missing(gadgets, "spinner") })
	consumer.kubectl("delete", "apibinding", "gadgets", "--timeout=60s")
	provider.kubectl("delete", "rgd", "gadgets", "--timeout=60s")
	must(t, consumer.Resource(estates).Delete(t.Context(), "works", metav1.DeleteOptions{}))
	eventually(t, "the kind is gone", func() error { return consumer.gone(estates, "works") })
}
