package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/test/testbed"
)

const greedy testbed.User = "greedy"

var greedies = authored("greedies")

// theGreedy is a consumer who asks for too much, and a provider who offers it.
func theGreedy(t *testing.T) (provider, consumer actor) {
	t.Helper()
	provider = theOffers(t)
	must(t, greedyReady())
	return provider, as(t, greedy)
}

var greedyReady = sync.OnceValue(func() error {
	ctx := context.Background()
	if _, err := bed.Kubectl(offers).Run(ctx, "apply", "-f", testdata("greedies.yaml")); err != nil {
		return err
	}
	if err := bed.AddUser(ctx, greedy); err != nil {
		return err
	}
	if err := bed.AllowBinding(ctx, offers, greedy); err != nil {
		return err
	}
	return bindOfferings(ctx, greedy, "greedies")
})

// overBudget says whether the error has the code and names the bound.
func overBudget(err error, code int32, bound *budget.Bound) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Errorf("got %.500v, want a Status that names %s", err, bound.Name)
	}
	said := status.Status()
	if said.Code != code || !strings.Contains(said.Message, budget.Prefix+bound.Of) || !strings.Contains(said.Message, bound.Name) {
		return fmt.Errorf("answered %d %.500s, want %d that names %s", said.Code, said.Message, code, bound.Name)
	}
	if most := 8 * budget.MessageBytes.Default; len(said.Message) > most {
		return fmt.Errorf("the message has %d bytes", len(said.Message))
	}
	return nil
}

func nested(levels int) any {
	value := any("x")
	for range levels {
		value = map[string]any{"a": value}
	}
	return value
}

func texts(count int) []any {
	list := make([]any, count)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return list
}

// TestGreedyInstancesAreRefused asks for what would take minutes, or all memory. Each is refused, by its bound,
// and nothing comes of it.
func TestGreedyInstancesAreRefused(t *testing.T) {
	_, consumer := theGreedy(t)
	for name, c := range map[string]struct {
		spec  map[string]any
		code  int32
		bound *budget.Bound
	}{
		"parts":   {map[string]any{"list": texts(5000)}, http.StatusUnprocessableEntity, budget.ForEachItems},
		"product": {nil, http.StatusUnprocessableEntity, budget.ForEachItems},
		"loops":   {map[string]any{"list": texts(2000)}, http.StatusUnprocessableEntity, budget.ExpressionCost},
		"range":   {map[string]any{"count": int64(1_000_000_000)}, http.StatusUnprocessableEntity, budget.ValueBytes},
		"pattern": {map[string]any{"text": strings.Repeat("a", 700<<10)}, http.StatusUnprocessableEntity, budget.ValueBytes},
		"large":   {map[string]any{"text": strings.Repeat("a", 400<<10)}, http.StatusUnprocessableEntity, budget.ChildBytes},
		"text":    {map[string]any{"text": strings.Repeat("a", 1<<20)}, http.StatusRequestEntityTooLarge, budget.InstanceBytes},
		"list":    {map[string]any{"list": texts(100_000)}, http.StatusRequestEntityTooLarge, budget.Values},
		"body":    {map[string]any{"text": strings.Repeat("a", 3<<20)}, http.StatusRequestEntityTooLarge, budget.RequestBytes},
		"nested":  {map[string]any{"any": nested(5000)}, http.StatusUnprocessableEntity, budget.Depth},
		"keys":    {map[string]any{"any": map[string]any{strings.Repeat("k", 1<<20): "v"}}, http.StatusRequestEntityTooLarge, budget.InstanceBytes},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{"what": name}
			for field, value := range c.spec {
				spec[field] = value
			}
			_, err := consumer.tries(greedies, instance("Greedy", name, spec))
			must(t, overBudget(err, c.code, c.bound))
			must(t, consumer.missing(greedies, name))
			must(t, consumer.missing(configMaps, name+"-modest"))
		})
	}
	// Somebody modest is served all the same.
	consumer.makes(greedies, instance("Greedy", "modest", map[string]any{"what": "nothing", "text": "a"}))
	must(t, consumer.has(configMaps, "modest-modest", "a", "data", "text"))
}

// TestKubectlShowsTheBound creates with kubectl what is too large, and looks at what a person sees.
func TestKubectlShowsTheBound(t *testing.T) {
	_, consumer := theGreedy(t)
	for name, size := range map[string]int{budget.ChildBytes.Name: 400 << 10, budget.InstanceBytes.Name: 2 << 20, budget.RequestBytes.Name: 4 << 20} {
		raw, err := json.Marshal(instance("Greedy", "shown", map[string]any{"what": "large", "text": strings.Repeat("a", size)}).Object)
		must(t, err)
		output, err := bed.Kubectl(consumer.user).RunWithInput(t.Context(), string(raw), "create", "-f", "-")
		if err == nil || !strings.Contains(output.Stderr, budget.Prefix) || !strings.Contains(output.Stderr, name) || len(output.Stderr) > 8*budget.MessageBytes.Default {
			t.Errorf("kubectl shows %.500s, %.200v; want the bound %s", output.Stderr, err, name)
		}
	}
}

// TestAStatusThatDoesNotFitIsToldAndComesBack copies three times of what the instance has into its status.
func TestAStatusThatDoesNotFitIsToldAndComesBack(t *testing.T) {
	_, consumer := theGreedy(t)
	created := consumer.makes(greedies, instance("Greedy", "copies", map[string]any{"what": "nothing", "text": strings.Repeat("a", 450<<10)}))
	if _, found, _ := unstructured.NestedFieldNoCopy(created.Object, "status", "copy"); found {
		t.Error("the status has a field that doesn't fit")
	}
	must(t, conditionIs(created, "Synced", "False"))
	raw, err := json.Marshal(created.Object["status"])
	must(t, err)
	if !strings.Contains(string(raw), budget.StoredBytes.Name) {
		t.Errorf("the status is %.500s, want the bound to be named", raw)
	}
	must(t, consumer.has(configMaps, "copies-modest", strings.Repeat("a", 450<<10), "data", "text"))
	consumer.patch(greedies, "copies", `{"spec":{"text":"abc"}}`)
	must(t, consumer.has(greedies, "copies", "abcabcabc", "status", "copy"))
	must(t, conditionIs(consumer.get(greedies, "copies"), "Synced", "True"))
}

// TestGreedyBlueprintsAreRefused applies blueprints that nobody could compile in time.
func TestGreedyBlueprintsAreRefused(t *testing.T) {
	provider, _ := theGreedy(t)
	resource := func(id string, data any) map[string]any {
		template := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": id}}
		if data != nil {
			template["data"] = data
		}
		return map[string]any{"id": id, "template": template}
	}
	resources := make([]any, 5000)
	for i := range resources {
		resources[i] = resource(fmt.Sprintf("c%d", i), nil)
	}
	few := resources[:budget.Resources.Default+1]
	for name, c := range map[string]struct {
		resources []any
		code      int32
		bound     *budget.Bound
	}{
		"resources":  {resources, http.StatusRequestEntityTooLarge, budget.Values},
		"few":        {few, http.StatusUnprocessableEntity, budget.Resources},
		"expression": {[]any{resource("a", map[string]any{"x": "${'" + strings.Repeat("a", 20<<10) + "'}"})}, http.StatusUnprocessableEntity, budget.ExpressionBytes},
		"literal":    {[]any{resource("a", map[string]any{"x": "${'" + strings.Repeat("a", 1<<20) + "'}"})}, http.StatusRequestEntityTooLarge, budget.BlueprintBytes},
		"nested":     {[]any{resource("a", nested(5000))}, http.StatusUnprocessableEntity, budget.Depth},
	} {
		t.Run(name, func(t *testing.T) {
			blueprint := childless("greedy-"+name, "Greedy", c.resources...)
			_, err := provider.Resource(blueprints).Create(t.Context(), blueprint, metav1.CreateOptions{})
			must(t, overBudget(err, c.code, c.bound))
		})
	}
}
