package kro

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	krocel "github.com/kubernetes-sigs/kro/pkg/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// oneExpression is a program with one ConfigMap whose data.x is the expression.
func oneExpression(t testing.TB, expression string, limits Limits) *engine.Program {
	t.Helper()
	blueprint := &v1alpha1.ResourceGraphDefinition{}
	blueprint.Name = "one"
	blueprint.Spec.Schema = &v1alpha1.Schema{Kind: "One", APIVersion: "v1", Group: "example.org"}
	blueprint.Spec.Schema.Spec.Raw = []byte(`{"text":"string","list":"[]string","n":"integer"}`)
	resource := v1alpha1.Resource{ID: "one"}
	resource.Template.Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"x":` + quoted("${"+expression+"}") + `}}`)
	blueprint.Spec.Resources = []v1alpha1.Resource{resource}
	program, errs := Compile(blueprint, testExport, kindsForTest(t), limits)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return program
}

func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

func oneInstance(spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "One",
		"metadata": map[string]any{"name": "o", "namespace": "n", "uid": "u"}, "spec": spec,
	}}
}

// TestExpressionsAreBounded evaluates what would take minutes, or all memory, without bounds.
func TestExpressionsAreBounded(t *testing.T) {
	million := strings.Repeat("a", 1<<20)
	list := make([]any, 2000)
	for i := range list {
		list[i] = strings.Repeat("x", 50)
	}
	spec := map[string]any{"text": million, "list": list, "n": int64(1_000_000_000)}
	// An expression that is stopped has allocated what its cost stands for, and what its values are made of.
	const most = 256 << 20
	for name, expression := range map[string]string{
		"nested loops":              "string(schema.spec.list.all(a, schema.spec.list.all(b, schema.spec.list.all(c, a + b + c != ''))))",
		"nested maps":               "string(size(schema.spec.list.map(a, schema.spec.list.map(b, schema.spec.list.map(c, c)))))",
		"range":                     "string(size(lists.range(schema.spec.n)))",
		"product of ranges":         "string(lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).exists_one(c, c == a))))",
		"replace":                   "schema.spec.text.replace('a', schema.spec.text)",
		"join":                      "schema.spec.list.join(schema.spec.text)",
		"format":                    "'%s%s%s%s%s'.format([schema.spec.text, schema.spec.text, schema.spec.text, schema.spec.text, schema.spec.text])",
		"random":                    "random.seededString(schema.spec.n, 'x')",
		"doubling":                  "cel.bind(a, schema.spec.text + schema.spec.text, cel.bind(b, a + a, cel.bind(c, b + b, cel.bind(d, c + c, cel.bind(e, d + d, e + e)))))",
		"shared lists in JSON":      "cel.bind(a, schema.spec.list, cel.bind(b, [a,a,a,a,a,a,a,a,a,a], cel.bind(c, [b,b,b,b,b,b,b,b,b,b], cel.bind(d, [c,c,c,c,c,c,c,c,c,c], json.marshal(d)))))",
		"shared lists encoded":      "cel.bind(a, schema.spec.list, cel.bind(b, [a,a,a,a,a,a,a,a,a,a], cel.bind(c, [b,b,b,b,b,b,b,b,b,b], cel.bind(d, [c,c,c,c,c,c,c,c,c,c], json.encode(d)))))",
		"regular expression":        "string(lists.range(1000).all(i, !schema.spec.text.matches('(a*)*(a*)*b')))",
		"search in a loop":          "string(lists.range(10000).all(i, !schema.spec.text.contains('b')))",
		"comparisons of long lists": "string(lists.range(100000).all(i, schema.spec.list == schema.spec.list))",
		"distinct":                  "string(size(lists.range(50000).distinct()))",
		"large regular expression":  "string(schema.spec.text.matches('" + strings.Repeat("a{1000}", 100) + "' + string(schema.spec.n)))",
		"sort":                      "string(size(lists.range(400000).sort()))",
		"sort by":                   "string(size(lists.range(400000).sortBy(e, -e)))",
		"split":                     "string(lists.range(1000).all(i, size(schema.spec.text.split('')) > 0))",
		"JSON":                      "string(lists.range(1000).all(i, json.unmarshal('[' + schema.spec.text.replace('a', '1,') + '1]') != null))",
		"quantity":                  "string(lists.range(1000).all(i, !isQuantity(schema.spec.text)))",
		"url":                       "string(lists.range(1000).all(i, isURL('https://' + schema.spec.text)))",
		"hash":                      "string(lists.range(1000).all(i, size(hash.sha256(schema.spec.text)) > 0))",
		"base64":                    "string(lists.range(1000).all(i, size(base64.encode(bytes(schema.spec.text))) > 0))",
		"flatten":                   "cel.bind(a, [schema.spec.list,schema.spec.list,schema.spec.list,schema.spec.list], cel.bind(b, [a,a,a,a,a,a,a,a], cel.bind(c, [b,b,b,b,b,b,b,b], string(size([c,c,c,c].flatten(4))))))",
		"literal range":             "string(size(lists.range(1000000000)))",
		"literal repetition":        "string(lists.range(1000000).map(i, 'aaaaaaaaaaaaaaaaaaaaaaaaaa' + string(i)).join('').size())",
		"member of a list":          doubled("string(V in [W])"),
		"place in a list":           doubled("string([V].indexOf(W))"),
		"last place in a list":      doubled("string([V].lastIndexOf(W))"),
		"distinct of lists":         doubled("string(size([V, W].distinct()))"),
		"options":                   doubled("string(optional.of(V) == optional.of(W))"),
		"options in a list":         doubled("string([optional.of(V)] == [optional.of(W)])"),
		"a list of itself":          bound("v", 62, "[1]", "V + V", "string(size(v62)) + string(lists.range(1000).all(i, lists.range(1000).all(j, i + j >= 0)))"),
		"errors that are caught":    doubled("string(lists.range(1000).exists(i, V == W))"),
		"a large exponent":          "string(isQuantity('1e-2147483647'))",
		"a long quantity":           "string(isQuantity('0.' + schema.spec.text))",
		"search for all":            "string(size(schema.spec.text.findAll('a.*b|a')))",
		"search for all in a text":  "string(size(schema.spec.text.findAll('a.*' + schema.spec.list[0] + '|a')))",
		"search in a loop, written": "string(lists.range(100000).all(i, schema.spec.text.find('b') == ''))",
		"loops without calls":       "cel.bind(l, lists.range(300000), string(size(l.map(a, l.filter(b, false)))))",
		"lists in a loop":           "string(size(lists.range(100000).map(a, [" + strings.Repeat("1,", 3000) + "1])))",
		"maps in a loop":            "string(size(lists.range(100000).map(a, {" + strings.Repeat("a:[a,a],", 500) + "-1:[a]})))",
		"transform":                 "string(size(schema.spec.list.transformList(i, a, schema.spec.list.transformList(j, b, schema.spec.list.transformMapEntry(k, c, {string(k): a + b + c})))))",
	} {
		t.Run(name, func(t *testing.T) {
			program := oneExpression(t, expression, Limits{})
			var plan *engine.Plan
			allocated := allocations(func() { plan = program.Plan(oneInstance(spec), "c", nil, nil) })
			if plan.Nodes[0].Outcome != engine.Failed {
				t.Fatalf("outcome is %s, expected Failed", plan.Nodes[0].Outcome)
			}
			if message := plan.Nodes[0].Err.Message; !strings.Contains(message, budget.Prefix) {
				t.Errorf("no bound is named: %s", message)
			}
			if allocated > most {
				t.Errorf("%d MiB were allocated, expected at most %d", allocated>>20, most>>20)
			}
		})
	}
}

// bound is an expression with n names bound one in the other, the last one's value being v<n>: V in the step is the
// name before.
func bound(name string, n int, first, step, last string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "cel.bind(%s0, %s, ", name, first)
	for i := range n {
		fmt.Fprintf(&out, "cel.bind(%s%d, %s, ", name, i+1, strings.ReplaceAll(step, "V", fmt.Sprint(name, i)))
	}
	return out.String() + last + strings.Repeat(")", n+1)
}

// doubled is an expression over V and W, two lists that are equal and have a trillion elements that are shared.
func doubled(expression string) string {
	const n = 40
	last := strings.NewReplacer("V", fmt.Sprint("v", n), "W", fmt.Sprint("w", n)).Replace(expression)
	return bound("v", n, "[1]", "[V, V]", bound("w", n, "[1]", "[V, V]", last))
}

// TestAPlanTakesNoLongerThanItMay has resources each of which takes longer than its cost says, and none of which takes
// longer than one may.
func TestAPlanTakesNoLongerThanItMay(t *testing.T) {
	before := planTime
	defer func() { planTime = before }()
	planTime = 100 * time.Millisecond
	blueprint := chain(20)
	for i := range blueprint.Spec.Resources {
		blueprint.Spec.Resources[i].Template.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%d"},"data":{"x":%s}}`, i,
			quoted(`${string(lists.range(2000).all(i, timestamp("2020-01-01T00:00:00Z").getHours("Europe/Berlin") >= 0))}`))
	}
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	plan := program.Plan(oneInstance(nil), "c", nil, nil)
	last := plan.Nodes[len(plan.Nodes)-1]
	if last.Outcome != engine.Failed || !strings.Contains(last.Err.Message, budget.PlanSeconds.Name) {
		t.Errorf("got %s, %v, want Failed, naming %s", last.Outcome, last.Err, budget.PlanSeconds.Name)
	}
}

func TestWhatTakesLongerThanItCostsTakesTurns(t *testing.T) {
	m := newMeter(Limits{}, "tenant")
	m.turn.since = time.Now().Add(-time.Hour)
	for range lookEvery {
		m.spend(1)
	}
	if !m.turn.end() {
		t.Error("it has no turn")
	}
}

// TestAStatusIsBounded has a status that would be gigabytes, of an instance of 30 kilobytes.
func TestAStatusIsBounded(t *testing.T) {
	blueprint := chain(1)
	fields := make(map[string]string)
	for i := range 4000 {
		fields[fmt.Sprint("s", i)] = "${schema.spec.list}"
	}
	status, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	blueprint.Spec.Schema.Spec.Raw = []byte(`{"value":"string","list":"[]string"}`)
	blueprint.Spec.Schema.Status.Raw = status
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	list := make([]any, 15_000)
	for i := range list {
		list[i] = "x"
	}
	var plan *engine.Plan
	allocated := allocations(func() { plan = program.Plan(oneInstance(map[string]any{"list": list}), "c", nil, nil) })
	if plan.StatusError == nil || !strings.Contains(plan.StatusError.Error(), budget.ValueBytes.Name) {
		t.Errorf("got %.300v, want %s", plan.StatusError, budget.ValueBytes.Name)
	}
	if most := uint64(256 << 20); allocated > most {
		t.Errorf("%d MiB were allocated, expected at most %d", allocated>>20, most>>20)
	}
}

func TestSharedValuesAreBoundedWhenTheyAreUnfolded(t *testing.T) {
	blueprint := blueprintFromYAML(t, []byte(`
kind: ResourceGraphDefinition
metadata: {name: bomb}
spec:
  schema: {kind: Bomb, apiVersion: v1, group: example.org, spec: {list: "[]string"}}
  resources:
  - id: server
    template:
      apiVersion: demo.example.org/v1
      kind: Server
      metadata: {name: x}
      spec: {options: {bomb: "${cel.bind(a, schema.spec.list, cel.bind(b, [a,a,a,a,a,a,a,a,a,a], cel.bind(c, [b,b,b,b,b,b,b,b,b,b], [c,c,c,c,c,c,c,c,c,c])))}"}}
`))
	program, errs := Compile(blueprint, testExport, kindsForTest(t), Limits{})
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	list := make([]any, 10000)
	for i := range list {
		list[i] = "x"
	}
	plan := program.Plan(oneInstance(map[string]any{"list": list}), "c", nil, nil)
	if plan.Nodes[0].Outcome != engine.Failed {
		t.Errorf("outcome is %s, expected Failed", plan.Nodes[0].Outcome)
	}
}

func TestThePlanAsAWholeIsBounded(t *testing.T) {
	program := oneExpression(t, "string(lists.range(1000).all(i, i >= 0))", Limits{budget.PlanCost: 1000})
	plan := program.Plan(oneInstance(nil), "c", nil, nil)
	if node := plan.Nodes[0]; node.Outcome != engine.Failed || !strings.Contains(node.Err.Message, "at most 1000 units are allowed (--max-plan-cost)") {
		t.Errorf("got %s, %v", node.Outcome, node.Err)
	}
}

// TestMeteredExpressionsGiveTheSame compares expressions over all libraries with what CEL makes of
// them when nothing is counted.
func TestMeteredExpressionsGiveTheSame(t *testing.T) {
	for _, expression := range []string{
		`"a" + "b"`, `[1] + [2, 3]`, `b"a" + b"b"`, `1 + 2`, `1.5 + 2.5`, `duration("1h") + duration("1m")`,
		`[1, 2] == [1, 2]`, `{"a": 1} == {"a": 1}`, `"a" != "b"`, `dyn(1) == "a"`, `1 in [1, 2]`, `"a" in {"a": 1}`,
		`"a" < "b"`, `1 < 2`, `2.0 >= 1.0`, `duration("1h") > duration("1m")`, `dyn("a") < dyn("b")`,
		`"hello".contains("ell")`, `"hello".startsWith("he")`, `"hello".endsWith("lo")`, `"hello".charAt(1)`, `"hello".indexOf("l")`, `"hello".indexOf("l", 3)`,
		`"hello".lastIndexOf("l")`, `[1, 2, 1].indexOf(1)`, `[1, 2, 1].lastIndexOf(1)`, `"Hello".lowerAscii()`, `"Hello".upperAscii()`, `" a ".trim()`,
		`"hello".substring(1)`, `"hello".substring(1, 3)`, `"hello".reverse()`, `[1, 2].reverse()`, `strings.quote("a\"b")`,
		`size("abc")`, `"abc".size()`, `size([1, 2])`, `size({"a": 1})`, `[1].size()`, `size(b"ab")`,
		`string(1)`, `string(b"a")`, `string(true)`, `bytes("a")`, `int("5")`, `int(2.5)`, `double("1.5")`, `string(timestamp("2020-01-01T00:00:00Z"))`,
		`string(duration("1h"))`, `quantity("1Gi").isGreaterThan(quantity("1Mi"))`, `isQuantity("x")`, `url("http://a.b/c").getHost()`, `isURL("x")`,
		`ip("10.0.0.1").family()`, `isIP("x")`, `cidr("10.0.0.0/8").prefixLength()`, `isCIDR("x")`, `semver("1.2.3").major()`, `isSemver("x")`,
		`base64.encode(b"abc")`, `base64.decode("YWJj")`, `hash.sha256("a")`, `hash.md5("a")`, `hash.fnv64a("a")`,
		`"a,b".split(",")`, `"a,b,c".split(",", 2)`, `["a", "b"].join("-")`, `["a", "b"].join()`, `"aXbX".replace("X", "-")`, `"aXbX".replace("X", "-", 1)`,
		`"%s-%d".format(["a", 5])`, `"abc".matches("a.c")`, `"abc1".find("[0-9]")`, `"a1b2".findAll("[0-9]")`, `"a1b2".findAll("[0-9]", 1)`, `"a1b2".findAll("[0-9]", 0)`, `"a1b2".findAll("[0-9]", -1)`, `"aaa".findAll("")`,
		`lists.range(300).map(i, string(i)).join(" ").findAll("[0-9]+")`, `lists.range(300).map(i, string(i)).join(" ").findAll(dyn("[0-9]+"), 77)`, `dyn("a").findAll(dyn(1))`,
		`"a".findAll("a", dyn("x"))`, `[1] in [[1], [2]]`, `[[1], [2]].indexOf([2])`, `[[1], [1]].distinct()`, `optional.of(1) == optional.of(1)`, `isQuantity("1e100")`, `quantity("12E")`, `isQuantity("1ex")`,
		`json.marshal({"a": [1, "b"]})`, `json.encode({"a": [1, "b"]})`, `json.unmarshal("{\"a\": 1}").a`,
		`[1, 2].sum()`, `[3, 1].min()`, `[3, 1].max()`, `[1, 2].isSorted()`, `[1, 2, 3].slice(0, 2)`, `[3, 1, 2].sort()`, `["b", "a"].sort()`,
		`[{"k": 2}, {"k": 1}].sortBy(e, e.k)`, `[1, 1, 2].distinct()`, `[[1], [2, [3]]].flatten()`, `[[1], [2, [3]]].flatten(2)`,
		`lists.setAtIndex([1, 2], 0, 5)`, `lists.insertAtIndex([1], 0, 5)`, `lists.removeAtIndex([1, 2], 0)`, `lists.range(3)`,
		`{"a": 1}.merge({"b": 2})`, `random.seededString(5, "s")`, `random.seededInt(1, 10, "s")`,
		`[1, 2].map(x, x * 2)`, `[1, 2].filter(x, x > 1)`, `[1, 2].exists_one(x, x == 1)`, `{"a": 1}.transformList(k, v, k)`, `optional.of(1).orValue(2)`,
		`int("x")`, `1 / 0`, `[1][5]`, `dyn(5) + dyn("a")`, `dyn([1]).matches("a")`, `dyn(1).contains("a")`, `dyn({}).a`, `dyn(5) < dyn("a")`, `size(dyn(5))`,
		`null == null`, `dyn(null) + 1`, `"a".replace("", "b")`, `"".split("")`,
	} {
		t.Run(expression, func(t *testing.T) {
			want, wantErr := evaluated(t, expression, cel.NoVars())
			got, gotErr := evaluated(t, expression, &scope{pass: &pass{meter: meter{expression: 1 << 20, plan: 1 << 20, slice: 1 << 20}}})
			if (wantErr == nil) != (gotErr == nil) {
				t.Fatalf("unmetered: %v, metered: %v", wantErr, gotErr)
			}
			if wantErr == nil && types.Equal(want, got) != types.True {
				t.Errorf("unmetered: %v, metered: %v", want, got)
			}
		})
	}
}

func evaluated(t *testing.T, expression string, vars any) (ref.Val, error) {
	t.Helper()
	options := krocel.BaseDeclarations()
	if _, isMetered := vars.(*scope); !isMetered {
		// The first of kro's declarations without what krop has put behind it.
		options = append([]cel.EnvOption{ext.TwoVarComprehensions()}, options[1:]...)
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(vars)
	return value, err
}

func TestAPanicIsAnErrorOfTheNode(t *testing.T) {
	program := oneExpression(t, "schema.spec.text", Limits{})
	p, err := program.Graph.Start(oneInstance(map[string]any{"text": "x"}))
	if err != nil {
		t.Fatal(err)
	}
	broken := p.(*pass)
	broken.graph = &graphProgram{limits: broken.graph.limits, nodes: map[v1alpha1.NodeID]*node{"one": {id: "one"}}}
	_, err = broken.Desired("one")
	var failure *engine.ExpressionError
	if !errors.As(err, &failure) || failure.Node != "one" {
		t.Errorf("got %v, expected an ExpressionError of the node", err)
	}
}
