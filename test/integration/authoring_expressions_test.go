package integration

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// leases has a kind with a number in it.
var (
	leases          = resourceName{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	serviceAccounts = resourceName{Version: "v1", Resource: "serviceaccounts"}
)

const consumerClusterAnnotation = "krop.opendefense.cloud/consumer-cluster"

// TestAuthoringOfExpressions shows what may be written in a template, and what becomes of it.
func TestAuthoringOfExpressions(t *testing.T) {
	provider, consumer := theAuthors(t)
	made := consumer.makes(phrases, instance("Phrase", "spoken", map[string]any{"text": "hello", "labels": map[string]any{"example.org/a": "b"}}))
	text := consumer.get(configMaps, "spoken")

	t.Run("standalone", func(t *testing.T) {
		must(t, fieldIs(text, "hello", "data", "text"))
		must(t, fieldIs(text, "b", "metadata", "labels", "example.org/a"))
		lease := get(t, consumer, leases, "spoken")
		must(t, fieldIs(lease, int64(4), "spec", "leaseDurationSeconds"))
		account := get(t, consumer, serviceAccounts, "spoken")
		must(t, fieldIs(account, false, "automountServiceAccountToken"))
		must(t, fieldIs(account, list(map[string]any{"name": "a"}, map[string]any{"name": "b"}), "imagePullSecrets"))
	})
	t.Run("interpolated", func(t *testing.T) {
		must(t, fieldIs(text, "<hello|2>", "data", "embedded"))
		must(t, fieldIs(get(t, consumer, leases, "spoken"), "spoken@default", "spec", "holderIdentity"))
	})
	t.Run("literal", func(t *testing.T) {
		must(t, fieldIs(text, "${HOME}", "data", "literal"))
		must(t, fieldIs(text, "echo $HOME $(date) ${USER:-nobody}", "data", "shell"))
		must(t, fieldIs(text, "not an ${expression", "data", "half"))
	})
	t.Run("optional access", func(t *testing.T) {
		for field, want := range map[string]string{"optional": "nothing", "has": "absent", "free": "none", "inFree": "no b"} {
			must(t, fieldIs(text, want, "data", field))
		}
		must(t, fieldIs(text, nil, "data", "nothing"))
		full := map[string]any{"maybe": "something", "free": map[string]any{"a": map[string]any{"b": "deep"}}}
		consumer := consumer.with(t)
		consumer.makes(phrases, instance("Phrase", "full", full))
		for field, want := range map[string]string{"optional": "something", "has": "there", "free": `{"a":{"b":"deep"}}`, "inFree": "deep"} {
			must(t, consumer.has(configMaps, "full", want, "data", field))
		}
		must(t, consumer.has(configMaps, "full", "something", "data", "nothing"))
		consumer.patch(phrases, "full", `{"spec":{"maybe":null}}`)
		must(t, consumer.has(configMaps, "full", nil, "data", "nothing"))
		must(t, consumer.has(configMaps, "full", "nothing", "data", "optional"))
	})
	t.Run("metadata of the instance", func(t *testing.T) {
		must(t, fieldIs(text, string(made.GetUID()), "data", "uid"))
		must(t, fieldIs(text, "default/spoken", "data", "of"))
		must(t, fieldIs(text, "unlabelled", "data", "label"))
		consumer := consumer.with(t)
		consumer.patch(phrases, "spoken", `{"metadata":{"labels":{"example.org/of-instance":"labelled"}}}`)
		must(t, consumer.has(configMaps, "spoken", "labelled", "data", "label"))
		seeded, _, err := unstructured.NestedString(text.Object, "data", "seeded")
		must(t, err)
		if len(seeded) != 8 {
			t.Errorf("what is seeded by the uid is %q", seeded)
		}
		must(t, consumer.has(configMaps, "spoken", seeded, "data", "seeded"))
	})
	t.Run("bytes", func(t *testing.T) {
		consumer := consumer.with(t)
		must(t, fieldIs(consumer.get(configMaps, "spoken-unsealed"), "hello", "data", "text"))
		must(t, fieldIs(consumer.get(secrets, "spoken-copied"), encoded("hello"), "data", "text"))
	})
	t.Run("omit", func(t *testing.T) { omissions(t, consumer.with(t)) })
	t.Run("instance data is never evaluated", func(t *testing.T) { verbatim(t, provider.with(t), consumer.with(t)) })
	t.Run("consumer cluster", func(t *testing.T) {
		provider, consumer := provider.with(t), consumer.with(t)
		cluster := consumer.cluster()
		must(t, fieldIs(text, cluster, "data", "cluster"))
		must(t, fieldIs(provider.child(configMaps, made, "named"), cluster, "data", "cluster"))
		must(t, fieldIs(made, cluster, "status", "cluster"))
		for _, object := range []*unstructured.Unstructured{made, text, consumer.get(phrases, "spoken"), provider.child(configMaps, made, "named")} {
			if _, stored := object.GetAnnotations()[consumerClusterAnnotation]; stored {
				t.Errorf("%s %s carries the annotation that is for expressions only", object.GetKind(), object.GetName())
			}
		}
	})
	t.Run("consumer cluster can't be claimed", func(t *testing.T) {
		consumer := consumer.with(t)
		liar := instance("Phrase", "liar", map[string]any{})
		liar.SetAnnotations(map[string]string{consumerClusterAnnotation: "elsewhere"})
		made := consumer.makes(phrases, liar)
		must(t, fieldIs(made, consumer.cluster(), "status", "cluster"))
		must(t, fieldIs(consumer.get(phrases, "liar"), nil, "metadata", "annotations", consumerClusterAnnotation))
	})
}

// TestAuthoringOfExpressionsThatFail shows where an error goes: into the answer if the instance causes it, into
// conditions if it comes later.
func TestAuthoringOfExpressionsThatFail(t *testing.T) {
	_, consumer := theAuthors(t)
	t.Run("on what the instance says", func(t *testing.T) {
		_, err := consumer.tries(phrases, instance("Phrase", "divides", map[string]any{"count": int64(0)}))
		must(t, refusedFor(err, "spec.count"))
		for _, want := range []string{"fragile", "10 / schema.spec.count", "division by zero"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the answer lacks %q: %v", want, err)
			}
		}
	})
	t.Run("on what somebody writes later", func(t *testing.T) {
		consumer := consumer.with(t)
		consumer.makes(phrases, instance("Phrase", "later", map[string]any{}))
		must(t, consumer.has(configMaps, "later-fragile", "1", "data", "number"))
		consumer.patch(configMaps, "later", `{"data":{"number":"many"}}`)
		eventually(t, "the error is told", func() error {
			if err := consumer.stateOf(phrases, "later", "fragile", "Failed"); err != nil {
				return err
			}
			return conditionIs(consumer.get(phrases, "later"), "Synced", "False")
		})
		must(t, consumer.has(configMaps, "later-fragile", "1", "data", "number"))
		must(t, consumer.stateOf(phrases, "later", "lists", "Ready"))
		consumer.patch(configMaps, "later", `{"data":{"number":"7"}}`)
		eventually(t, "it goes on", func() error { return consumer.has(configMaps, "later-fragile", "7", "data", "number") })
	})
}

// TestEachInstanceAppliesUnderAFieldManagerOfItsOwn looks at who manages the fields of children.
func TestEachInstanceAppliesUnderAFieldManagerOfItsOwn(t *testing.T) {
	provider, consumer := theAuthors(t)
	for _, name := range []string{"manages", "manages-too"} {
		made := consumer.makes(phrases, instance("Phrase", name, map[string]any{}))
		for _, child := range []*unstructured.Unstructured{consumer.get(configMaps, name), provider.child(configMaps, made, "named")} {
			managers := child.GetManagedFields()
			if len(managers) != 1 || managers[0].Manager != "krop-"+string(made.GetUID()) {
				t.Errorf("%s is managed by %v, want krop-%s alone", child.GetName(), managers, made.GetUID())
			}
		}
	}
}

// with is the same actor in a subtest.
func (a actor) with(t *testing.T) actor {
	a.t = t
	return a
}

func get(t *testing.T, of actor, resource resourceName, name string) *unstructured.Unstructured {
	t.Helper()
	return of.with(t).get(resource, name)
}

// omissions leaves out a key of a map, a field, and an element of a list, and puts them there when they are wanted.
func omissions(t *testing.T, consumer actor) {
	consumer.makes(phrases, instance("Phrase", "omits", map[string]any{}))
	must(t, consumer.has(configMaps, "omits", nil, "data", "omitted"))
	must(t, consumer.has(configMaps, "omits", nil, "metadata", "annotations", "example.org/pinned"))
	two := list(map[string]any{"name": "literal"}, map[string]any{"name": "omits"})
	must(t, consumer.has(serviceAccounts, "omits", two, "secrets"))

	consumer.patch(phrases, "omits", `{"spec":{"pin":true}}`)
	must(t, consumer.has(configMaps, "omits", "pinned", "data", "omitted"))
	must(t, consumer.has(configMaps, "omits", "yes", "metadata", "annotations", "example.org/pinned"))
	must(t, consumer.has(serviceAccounts, "omits", append(two, map[string]any{"name": "pinned"}), "secrets"))

	consumer.patch(phrases, "omits", `{"spec":{"pin":false}}`)
	must(t, consumer.has(configMaps, "omits", nil, "data", "omitted"))
	must(t, consumer.has(serviceAccounts, "omits", two, "secrets"))
}

// verbatim has data that looks like expressions in a value, in an annotation, in a key, and in a name.
func verbatim(t *testing.T, provider, consumer actor) {
	const tricky = `${schema.spec.maybe} ${"a"} $${plain.data.text} ${`
	made := consumer.makes(phrases, instance("Phrase", "tricky", map[string]any{
		"text": tricky, "maybe": "SECRET", "free": map[string]any{"${schema.spec.maybe}": "${schema.spec.maybe}"},
	}))
	text := consumer.get(configMaps, "tricky")
	must(t, fieldIs(text, tricky, "data", "text"))
	must(t, fieldIs(text, "<"+tricky+"|2>", "data", "embedded"))
	must(t, fieldIs(text, tricky, "metadata", "annotations", "example.org/text"))
	must(t, fieldIs(text, `{"${schema.spec.maybe}":"${schema.spec.maybe}"}`, "data", "free"))
	must(t, fieldIs(made, tricky, "status", "text"))
	must(t, fieldIs(provider.child(configMaps, made, "named"), tricky, "data", "text"))

	_, err := consumer.tries(phrases, instance("Phrase", "labelled", map[string]any{"labels": map[string]any{"example.org/l": "${schema.spec.text}"}}))
	if err == nil || !strings.Contains(err.Error(), "${schema.spec.text}") {
		t.Errorf("a label that looks like an expression is answered by %v, want what the API server says of the text", err)
	}
}

// TestAuthoringOfEveryFunction evaluates the expressions in docs/authoring.md, where each function of each library is.
// That none is missing there is checked beside kro's environment.
func TestAuthoringOfEveryFunction(t *testing.T) {
	_, consumer := theAuthors(t)
	shown, err := excerptsShown()
	must(t, err)
	if len(shown) < 50 {
		t.Fatalf("docs/authoring.md shows %d expressions, want those of all libraries", len(shown))
	}
	consumer.makes(excerpts, instance("Excerpt", "functions", map[string]any{}))
	values := consumer.get(configMaps, "functions")
	for i, excerpt := range shown {
		t.Run(excerpt.expression, func(t *testing.T) {
			got, _, err := unstructured.NestedString(values.Object, "data", excerptKey(i))
			must(t, err)
			if !sameJSON(t, got, excerpt.value) {
				t.Errorf("%s gives %s, docs/authoring.md says %s", excerpt.expression, got, excerpt.value)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var left, right any
	must(t, json.Unmarshal([]byte(a), &left))
	must(t, json.Unmarshal([]byte(b), &right))
	return reflect.DeepEqual(left, right)
}
