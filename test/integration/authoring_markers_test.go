package integration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sampleWith is a sample with more in its spec than it has to have.
func sampleWith(name string, fields map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"title": "t"}
	for field, value := range fields {
		spec[field] = value
	}
	return instance("Sample", name, spec)
}

// list is never nil, which would be null.
func list(values ...any) []any { return append([]any{}, values...) }

// TestAuthoringOfMarkers shows each marker by what it makes of an instance, or what it refuses.
func TestAuthoringOfMarkers(t *testing.T) {
	_, consumer := theAuthors(t)
	t.Run("required", func(t *testing.T) {
		_, err := consumer.tries(samples, instance("Sample", "untitled", map[string]any{}))
		must(t, refusedFor(err, "spec.title"))
	})
	t.Run("default", func(t *testing.T) {
		answer, err := consumer.tries(samples, sampleWith("default", nil))
		must(t, err)
		must(t, fieldIs(answer, int64(3), "spec", "size"))
		must(t, fieldIs(answer, "safe", "spec", "mode"))
	})
	t.Run("nested defaults", func(t *testing.T) {
		answer, err := consumer.tries(samples, sampleWith("nested", nil))
		must(t, err)
		must(t, fieldIs(answer, map[string]any{"on": true, "factor": int64(7)}, "spec", "nested", "deep"))
		answer, err = consumer.tries(samples, sampleWith("nested", map[string]any{"nested": map[string]any{"deep": map[string]any{"on": false}}}))
		must(t, err)
		must(t, fieldIs(answer, map[string]any{"on": false, "factor": int64(7)}, "spec", "nested", "deep"))
	})
	for _, refused := range []struct {
		marker, field string
		good, bad     any
		at            string
	}{
		{"minimum", "size", int64(1), int64(0), ""},
		{"maximum", "size", int64(9), int64(10), ""},
		{"minimum of a float", "share", 0.25, 0.2, ""},
		{"maximum of a float", "share", 0.75, 0.8, ""},
		{"minLength", "long", "four", "one", ""},
		{"maxLength", "short", "four", "longer", ""},
		{"pattern", "code", "ab.c", "AB", ""},
		{"enum", "mode", "fast", "slow", ""},
		{"minItems", "few", list("a"), list(), ""},
		{"maxItems", "few", list("a", "b"), list("a", "b", "c"), ""},
		{"uniqueItems", "unique", list("a", "b"), list("a", "a"), "[1]"},
		{"listType set", "set", list("a", "b"), list("a", "a"), "[1]"},
		{"listMapKey", "ports", list(map[string]any{"name": "a"}, map[string]any{"name": "b"}), list(map[string]any{"name": "a"}, map[string]any{"name": "a"}), "[1]"},
		{"markers in types", "ports", list(map[string]any{"name": "a", "number": int64(1)}), list(map[string]any{"name": "a", "number": int64(0)}), "[0].number"},
		{"validation", "even", int64(2), int64(3), ""},
		{"object", "free", map[string]any{"any": list(map[string]any{"thing": 1.5})}, "text", ""},
		{"map", "labels", map[string]any{"a": "b"}, map[string]any{"a": int64(1)}, ".a"},
		{"list of lists", "matrix", list(list(int64(1)), list()), list(int64(1)), "[0]"},
		{"map of lists", "groups", map[string]any{"a": list("b")}, map[string]any{"a": "b"}, ".a"},
	} {
		t.Run(refused.marker, func(t *testing.T) {
			answer, err := consumer.tries(samples, sampleWith("marked", map[string]any{refused.field: refused.good}))
			must(t, err)
			if refused.marker != "markers in types" && refused.marker != "listMapKey" { // those have defaults inside
				must(t, fieldIs(answer, refused.good, "spec", refused.field))
			}
			_, err = consumer.tries(samples, sampleWith("marked", map[string]any{refused.field: refused.bad}))
			must(t, refusedFor(err, "spec."+refused.field+refused.at))
		})
	}
	t.Run("listType in server-side apply", func(t *testing.T) { listTypes(t, consumer) })
	t.Run("immutable", func(t *testing.T) { immutables(t, consumer) })
	t.Run("special characters", func(t *testing.T) { specials(t, consumer) })
}

// listTypes has two appliers of one object: sets and maps keep the elements of both, an atomic list those of the last.
func listTypes(t *testing.T, consumer actor) {
	consumer.t = t
	for _, applier := range []string{"one", "two"} {
		_, err := bed.Kubectl(consumer.user).Apply(t.Context(), `
apiVersion: authoring.example.org/v1alpha1
kind: Sample
metadata: {name: applied}
spec: {title: t, set: [`+applier+`], ports: [{name: `+applier+`}], atomic: [`+applier+`]}
`, "--server-side", "--force-conflicts", "--field-manager="+applier)
		must(t, err)
	}
	sample := consumer.get(samples, "applied")
	must(t, fieldIs(sample, list("one", "two"), "spec", "set"))
	must(t, fieldIs(sample, list("two"), "spec", "atomic"))
	ports, _, err := unstructured.NestedSlice(sample.Object, "spec", "ports")
	must(t, err)
	if len(ports) != 2 {
		t.Errorf("ports of two appliers are %v, want both", ports)
	}
}

// immutables can't be changed, nor set or unset once the object is there.
func immutables(t *testing.T, consumer actor) {
	consumer.t = t
	consumer.makes(samples, sampleWith("with", map[string]any{"born": "here", "home-town": "here"}))
	consumer.makes(samples, sampleWith("without", nil))
	must(t, consumer.triesPatch(samples, "with", `{"spec":{"born":"here","size":4}}`))
	must(t, refusedFor(consumer.triesPatch(samples, "with", `{"spec":{"born":"there"}}`), "spec.born"))
	must(t, refusedFor(consumer.triesPatch(samples, "with", `{"spec":{"always":"second"}}`), "spec.always"))
	for field, patch := range map[string]string{"born": `{"spec":{"born":%s}}`, "home-town": `{"spec":{"home-town":%s}}`} {
		for name, value := range map[string]string{"with": "null", "without": `"late"`} {
			err := consumer.triesPatch(samples, name, strings.Replace(patch, "%s", value, 1))
			must(t, refusedFor(err, "spec"))
			if !strings.Contains(err.Error(), field+" is immutable") {
				t.Errorf("the answer doesn't name %s: %v", field, err)
			}
		}
	}
}

// specials are texts that need escaping in JSON or CEL: in defaults, in enums, and on their way into a child.
func specials(t *testing.T, consumer actor) {
	consumer.t = t
	const quoted = `say "hi" & it's <100%> \ {}[] | é`
	consumer.makes(samples, sampleWith("quoted", nil))
	must(t, consumer.has(samples, "quoted", quoted, "spec", "quoted"))
	must(t, consumer.has(configMaps, "quoted", quoted, "data", "quoted"))
	must(t, consumer.has(configMaps, "quoted", "it's", "data", "wording"))
	for _, wording := range []string{`a "b"`, `c\d`, "it's"} {
		_, err := consumer.tries(samples, sampleWith("worded", map[string]any{"wording": wording}))
		must(t, err)
	}
	_, err := consumer.tries(samples, sampleWith("worded", map[string]any{"wording": `a \"b\"`}))
	must(t, refusedFor(err, "spec.wording"))
}
