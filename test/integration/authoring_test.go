package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"go.opendefense.cloud/krop/test/testbed"
)

// The tests of this and the other authoring_*_test.go show each feature of the language of blueprints as its users
// see it. docs/authoring.md lists which test shows which. They share the offerings in testdata/authoring and one
// consumer who has bound them all, since publishing and binding take seconds.

const (
	authoringGroup              = "authoring.example.org"
	authoring      testbed.User = "authoring"
)

// Kinds of the offerings in testdata/authoring.
var (
	samples  = authored("samples")
	phrases  = authored("phrases")
	graphs   = authored("graphs")
	estates  = authored("estates")
	gadgets  = authored("gadgets")
	excerpts = authored("excerpts")
)

func authored(resource string) resourceName {
	return resourceName{Group: authoringGroup, Version: "v1alpha1", Resource: resource}
}

// theAuthors are the provider and the consumer of the offerings that show the authoring surface.
func theAuthors(t *testing.T) (provider, consumer actor) {
	t.Helper()
	provider = theOffers(t)
	must(t, authorsReady())
	return provider, as(t, authoring)
}

var authorsReady = sync.OnceValue(func() error {
	ctx := context.Background()
	kubectl := bed.Kubectl(offers)
	if _, err := kubectl.Run(ctx, "apply", "-f", testdata("authoring-rights.yaml")); err != nil {
		return err
	}
	// it takes a moment until rights are known
	err := wait.PollUntilContextTimeout(ctx, eventPoll, eventTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := kubectl.Run(ctx, "auth", "can-i", "create", "customresourcedefinitions.apiextensions.k8s.io", "--as=krop")
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	if _, err := kubectl.Run(ctx, "apply", "-f", testdata("authoring")); err != nil {
		return err
	}
	excerpt, err := excerptBlueprint()
	if err != nil {
		return err
	}
	if _, err := kubectl.Apply(ctx, excerpt); err != nil {
		return err
	}
	if err := bed.AddUser(ctx, authoring); err != nil {
		return err
	}
	if err := bed.AllowBinding(ctx, offers, authoring); err != nil {
		return err
	}
	return bindOfferings(ctx, authoring, "samples", "phrases", "graphs", "estates", "excerpts")
})

// bindOfferings binds offerings of the authoring group once they are published, accepting what each claims.
func bindOfferings(ctx context.Context, consumer testbed.User, names ...string) error {
	published := append([]string{"wait", "--for=condition=Ready", "--timeout=60s", "rgd"}, names...)
	if _, err := bed.Kubectl(offers).Run(ctx, published...); err != nil {
		return err
	}
	for _, name := range names {
		binding, err := bindingOf(ctx, name)
		if err != nil {
			return err
		}
		if _, err := bed.Kubectl(consumer).Apply(ctx, binding); err != nil {
			return err
		}
	}
	bound := append([]string{"wait", "--for=condition=Ready", "--timeout=60s", "apibinding"}, names...)
	_, err := bed.Kubectl(consumer).Run(ctx, bound...)
	return err
}

// bindingOf is a binding to an offering that accepts all that the blueprint's status says it claims.
func bindingOf(ctx context.Context, name string) (string, error) {
	output, err := bed.Kubectl(offers).Run(ctx, "get", "rgd", name, "-o", "jsonpath={.status.permissionClaims}")
	if err != nil {
		return "", err
	}
	var claims []map[string]any
	if err := json.Unmarshal([]byte(output.Stdout), &claims); err != nil {
		return "", fmt.Errorf("claims of %s: %w", name, err)
	}
	for _, claim := range claims {
		claim["state"], claim["selector"] = "Accepted", map[string]any{"matchAll": true}
	}
	binding, err := yaml.Marshal(map[string]any{
		"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"reference":        map[string]any{"export": map[string]any{"path": "root:offers", "name": name + "." + authoringGroup}},
			"permissionClaims": claims,
		},
	})
	return string(binding), err
}

// instance is one of an authoring kind. Those of cluster-scoped kinds have no namespace.
func instance(kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": authoringGroup + "/v1alpha1", "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
	if kind != "Estate" {
		object.SetNamespace(namespace)
	}
	return object
}

// makes creates an instance that must be accepted.
func (a actor) makes(resource resourceName, object *unstructured.Unstructured) *unstructured.Unstructured {
	a.t.Helper()
	created, err := a.Resource(resource).Namespace(object.GetNamespace()).Create(a.t.Context(), object, metav1.CreateOptions{})
	must(a.t, err)
	return created
}

// tries creates an instance in a dry run.
func (a actor) tries(resource resourceName, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return a.Resource(resource).Namespace(object.GetNamespace()).Create(a.t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// triesPatch merges into an object in a dry run.
func (a actor) triesPatch(resource resourceName, name, patch string) error {
	_, err := a.in(resource).Patch(a.t.Context(), name, mergePatch, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// refusedFor says what is wrong unless an error is 422 with a cause at a field.
func refusedFor(err error, field string) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return fmt.Errorf("the answer is %v, want 422 for %s", err, field)
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == field {
			return nil
		}
	}
	return fmt.Errorf("no cause at %s: %w", field, err)
}

// names are the names of an instance's children of a node, sorted.
func (a actor) names(resource resourceName, of *unstructured.Unstructured, node string) []string {
	a.t.Helper()
	found, err := a.children(resource, of, node)
	must(a.t, err)
	out := []string{}
	for i := range found {
		out = append(out, found[i].GetName())
	}
	slices.Sort(out)
	return out
}

// excerptKeys are where the child of excerptBlueprint has the value of each expression.
func excerptKey(i int) string { return fmt.Sprintf("e%03d", i) }

// excerptBlueprint is an offering whose child has the values of all expressions in docs/authoring.md.
func excerptBlueprint() (string, error) {
	shown, err := excerptsShown()
	if err != nil {
		return "", err
	}
	data := make(map[string]any, len(shown))
	for i, excerpt := range shown {
		data[excerptKey(i)] = "${json.marshal(" + excerpt.expression + ")}"
	}
	blueprint, err := yaml.Marshal(map[string]any{
		"apiVersion": "krop.opendefense.cloud/v1alpha1", "kind": "ResourceGraphDefinition", "metadata": map[string]any{"name": "excerpts"},
		"spec": map[string]any{
			"schema": map[string]any{"group": authoringGroup, "apiVersion": "v1alpha1", "kind": "Excerpt"},
			"resources": []any{map[string]any{"id": "values", "template": map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "${schema.metadata.name}"}, "data": data,
			}}},
		},
	})
	return string(blueprint), err
}

// excerpt is a line of docs/authoring.md: an expression and, after an arrow, its value in JSON.
type excerpt struct{ expression, value string }

func excerptsShown() ([]excerpt, error) {
	text, err := os.ReadFile(filepath.Join(checkout, "docs", "authoring.md"))
	if err != nil {
		return nil, err
	}
	var out []excerpt
	for line := range strings.Lines(string(text)) {
		code, indented := strings.CutPrefix(line, "    ")
		expression, value, found := strings.Cut(strings.TrimSpace(code), " → ")
		if indented && found {
			out = append(out, excerpt{expression, value})
		}
	}
	return out, nil
}
