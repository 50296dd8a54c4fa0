package kro

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// allocations is how many bytes a function allocates, whether they are given back or not.
func allocations(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// withData is a blueprint of one ConfigMap whose data.x is the text.
func withData(text string) *v1alpha1.ResourceGraphDefinition {
	blueprint := chain(1)
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{"x": text},
	})
	if err != nil {
		panic(err)
	}
	blueprint.Spec.Resources[0].Template.Raw = raw
	return blueprint
}

// withField is a blueprint whose spec has one field.
func withField(simple string) *v1alpha1.ResourceGraphDefinition {
	blueprint := chain(1)
	raw, err := json.Marshal(map[string]string{"value": "string", "hostile": simple})
	if err != nil {
		panic(err)
	}
	blueprint.Spec.Schema.Spec.Raw = raw
	return blueprint
}

// withFields is a blueprint whose spec has n fields of one type.
func withFields(n int, simple string) *v1alpha1.ResourceGraphDefinition {
	blueprint := chain(1)
	fields := map[string]any{"value": "string"}
	for i := range n {
		fields[fmt.Sprint("f", i)] = "Same"
	}
	blueprint.Spec.Schema.Spec.Raw = marshalled(fields)
	blueprint.Spec.Schema.Types.Raw = marshalled(map[string]any{"Same": simple})
	return blueprint
}

// withTypes is a blueprint with n types, each of so many fields of the next.
func withTypes(n, fields int) *v1alpha1.ResourceGraphDefinition {
	blueprint := chain(1)
	types := map[string]any{fmt.Sprint("T", n): "string"}
	for i := range n {
		object := map[string]any{}
		for j := range fields {
			object[fmt.Sprint("f", j)] = fmt.Sprint("T", i+1)
		}
		types[fmt.Sprint("T", i)] = object
	}
	blueprint.Spec.Schema.Types.Raw = marshalled(types)
	return blueprint
}

func marshalled(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return raw
}

// TestHostileBlueprintsAreRefused compiles what would take minutes, or all memory, without bounds.
func TestHostileBlueprintsAreRefused(t *testing.T) {
	const most = 512 << 20
	longest := budget.ExpressionBytes.Default - 100
	for name, c := range map[string]struct {
		blueprint *v1alpha1.ResourceGraphDefinition
		// says is in the refusal: the bound, or CEL's or an API server's own words.
		says string
	}{
		"a million characters in an expression": {withData("${'" + strings.Repeat("a", 1<<20) + "'}"), "--max-expression-bytes"},
		"a million characters beside one":       {withData(strings.Repeat("a", 1<<20) + "${1}"), "--max-expression-bytes"},
		"nested parentheses":                    {withData("${" + strings.Repeat("(", longest/2) + "1" + strings.Repeat(")", longest/2) + "}"), "recursion"},
		"nested lists":                          {withData("${string(size(" + strings.Repeat("[", longest/2) + strings.Repeat("]", longest/2) + "))}"), "recursion"},
		"nested conditions":                     {withData("${" + strings.Repeat("true?", longest/10) + "'a'" + strings.Repeat(":'b'", longest/10) + "}"), "limit exceeded"},
		"5000 resources":                        {chain(5000), "--max-resources"},
		"thousands of dependencies":             {web(budget.Resources.Default), "--max-dependencies"},
		"eleven axes":                           {axes(budget.Dimensions.Default + 1), "--max-foreach-axes"},
		"a giant regular expression in a field": {withField(`string | pattern="` + strings.Repeat("a{1000}", 1000) + `"`), "maxPatternStates"},
		"one in an expression":                  {withData("${schema.spec.value.find('" + strings.Repeat("a{1000}", 1000) + "')}"), "maxPatternStates"},
		"one in a rule":                         {withField(`string | validation="self.matches('` + strings.Repeat("a{1000}", 20) + `')"`), "maxPatternStates"},
		"one in a rule's value":                 {withField(`string | validation="self.matches(self)"`), "written in the rule"},
		"one that a rule makes":                 {withField(`string | validation="self.find('a{1000}' + 'a{1000}') == ''"`), "written in the rule"},
		"a large quantity in a rule":            {withField(`string | validation="isQuantity('1e-2147483647')"`), "large exponents"},
		"one that is put together":              {withField(`string | validation="isQuantity('1e-' + self)"`), "large exponents"},
		"a long rule":                           {withField(`string | validation="` + strings.Repeat("self != 'a' && ", 1000) + `true"`), "--max-expression-bytes"},
		"long rules":                            {withFields(50, `string | validation="`+strings.Repeat("self != 'a' && ", 500)+`true"`), "maxSchemaRules"},
		"many rules":                            {withFields(2000, `string | validation="self != 'a'"`), "maxSchemaRules"},
		"a long enum in many fields":            {withFields(2000, `string | enum="a`+strings.Repeat(",a", 10_000)+`"`), "maxSchemaBytes"},
		"a long default in many fields":         {withFields(2000, `string | default="`+strings.Repeat("d", 10_000)+`"`), "maxSchemaBytes"},
		"types in types":                        {withTypes(2000, 1), "maxDepth"},
		"types that no field has":               {withTypes(12, 8), "--max-schema-fields"},
		"quantifiers in a rule":                 {withField(`[]string | validation="self.all(a, self.all(b, self.all(c, self.all(d, a + b + c != d))))"`), "cost"},
	} {
		t.Run(name, func(t *testing.T) {
			var said string
			allocated := allocations(func() {
				_, errs := Compile(c.blueprint, testExport, kindsForTest(t), Limits{})
				if len(errs) > 0 {
					said = errs.ToAggregate().Error()
				}
			})
			if !strings.Contains(said, c.says) {
				t.Errorf("got %q … %q, want something with %q", said[:min(len(said), 300)], said[max(0, len(said)-300):], c.says)
			}
			if allocated > most {
				t.Errorf("%d MiB were allocated, expected at most %d", allocated>>20, most>>20)
			}
		})
	}
}

// web is n config maps, each of which reads all before it.
func web(n int) *v1alpha1.ResourceGraphDefinition {
	blueprint := chain(n)
	var read []string
	for i := range n {
		value := "'x'"
		if len(read) > 0 {
			value = strings.Join(read, "+")
		}
		blueprint.Spec.Resources[i].Template.Raw = fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%d"},"data":{"a":"${%s}"}}`, i, value)
		if len(read) < 40 {
			read = append(read, fmt.Sprintf("c%d.data.a", i))
		}
	}
	return blueprint
}

// axes is a collection over the product of n lists of a hundred.
func axes(n int) *v1alpha1.ResourceGraphDefinition {
	blueprint := chain(1)
	resource := &blueprint.Spec.Resources[0]
	var name strings.Builder
	for i := range n {
		resource.ForEach = append(resource.ForEach, map[string]string{fmt.Sprintf("axis%d", i): "${lists.range(100)}"})
		fmt.Fprintf(&name, "-${string(axis%d)}", i)
	}
	resource.Template.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x%s"}}`, name.String())
	return blueprint
}

// TestHostileInstancesAreRefused plans what would be too many children, or too large ones.
func TestHostileInstancesAreRefused(t *testing.T) {
	const most = 256 << 20
	for name, c := range map[string]struct {
		blueprint *v1alpha1.ResourceGraphDefinition
		spec      map[string]any
		bound     *budget.Bound
	}{
		"ten axes of a hundred":           {axes(budget.Dimensions.Default), nil, budget.ForEachItems},
		"more items than a forEach has":   {many("string(i)", 1), map[string]any{"n": int64(1001)}, budget.ForEachItems},
		"more children than one may have": {many("string(i)", 2), map[string]any{"n": int64(1000)}, budget.Children},
		"a child of two megabytes":        {withData("${schema.spec.value + schema.spec.value}"), map[string]any{"value": strings.Repeat("a", 1<<20)}, budget.ChildBytes},
		"a thousand of 100 kilobytes":     {many("schema.spec.text", 1), map[string]any{"n": int64(1000), "text": strings.Repeat("a", 100<<10)}, budget.RenderedBytes},
		"long names":                      {named(250), map[string]any{"n": int64(1000)}, budget.InventoryBytes},
	} {
		t.Run(name, func(t *testing.T) {
			program, errs := Compile(c.blueprint, testExport, kindsForTest(t), Limits{})
			if len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			var plan *engine.Plan
			allocated := allocations(func() { plan = program.Plan(oneInstance(c.spec), "c", nil, nil) })
			node := plan.Nodes[len(plan.Nodes)-1]
			if node.Outcome != engine.Failed || !strings.Contains(node.Err.Message, c.bound.Of) || !strings.Contains(node.Err.Message, c.bound.Name) {
				t.Errorf("got %s, %v, want Failed, naming %s", node.Outcome, node.Err, c.bound.Name)
			}
			if allocated > most {
				t.Errorf("%d MiB were allocated, expected at most %d", allocated>>20, most>>20)
			}
		})
	}
}

// many is so many collections of n config maps, with the value in each.
func many(value string, collections int) *v1alpha1.ResourceGraphDefinition {
	blueprint := chain(collections)
	blueprint.Spec.Schema.Spec.Raw = []byte(`{"value":"string","text":"string","n":"integer"}`)
	for i := range collections {
		resource := &blueprint.Spec.Resources[i]
		resource.ForEach = []v1alpha1.ForEachDimension{{"i": "${lists.range(schema.spec.n)}"}}
		resource.Template.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%d-${string(i)}"},"data":{"x":"${%s}"}}`, i, value)
	}
	return blueprint
}

// named has three collections, whose children have names and namespaces as long as they get.
func named(length int) *v1alpha1.ResourceGraphDefinition {
	blueprint := many("string(i)", 1)
	blueprint.Spec.Resources[0].Template.Raw = fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s${string(i)}"},"data":{"x":"y"}}`, strings.Repeat("n", length-4))
	return blueprint
}

// TestDeepValuesAreUnfolded goes through values as deep as any object may be.
func TestDeepValuesAreUnfolded(t *testing.T) {
	blueprint := blueprintFromYAML(t, []byte(`
kind: ResourceGraphDefinition
metadata: {name: deep}
spec:
  schema: {kind: Deep, apiVersion: v1, group: example.org, spec: {any: object}}
  resources:
  - id: server
    template:
      apiVersion: demo.example.org/v1
      kind: Server
      metadata: {name: x}
      spec: {options: {any: "${schema.spec.any}"}}
`))
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	deep := any("x")
	for range budget.Depth.Default {
		deep = map[string]any{"a": deep}
	}
	if plan := program.Plan(oneInstance(map[string]any{"any": deep}), "c", nil, nil); plan.Nodes[0].Outcome != engine.Desired {
		t.Errorf("got %s, %v", plan.Nodes[0].Outcome, plan.Nodes[0].Err)
	}
}
