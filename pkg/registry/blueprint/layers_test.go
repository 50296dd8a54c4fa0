package blueprint_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
)

// fieldsOf are the fields of an Invalid Status's causes.
func fieldsOf(t *testing.T, err error) []string {
	t.Helper()
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		t.Fatalf("%v, want Invalid", err)
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
		if !strings.Contains(status.Status().Message, cause.Message) {
			t.Errorf("the message lacks %q: %s", cause.Message, status.Status().Message)
		}
	}
	return fields
}

const twoMistakes = widgets + `
  resources:
  - id: config
    target: nowhere
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {size: "${schema.spec.colour}"}}
`

func TestMistakesForTheSchemaAndForTheCompilerAreAnsweredTogether(t *testing.T) {
	s := start(t)
	_, err := s.tryCreate(t, twoMistakes)
	created := fieldsOf(t, err)
	if !slices.Contains(created, "spec.resources[0].target") || !slices.ContainsFunc(created, func(f string) bool {
		return strings.HasPrefix(f, "spec.resources[0].template")
	}) {
		t.Errorf("causes at %v", created)
	}
	if each := slices.Compact(slices.Sorted(slices.Values(created))); len(each) != len(created) {
		t.Errorf("a mistake is answered twice: %v", created)
	}

	s.create(t, widgets)
	edited := s.stored(t)
	edited.Object["spec"] = object(t, twoMistakes).Object["spec"]
	_, _, err = s.main.Update(s.ctx, "widgets", rest.DefaultUpdatedObjectInfo(edited), nil, nil, false, &metav1.UpdateOptions{})
	if updated := fieldsOf(t, err); !slices.Equal(updated, created) {
		t.Errorf("an update has causes at %v, a create at %v", updated, created)
	}
}

func TestResourceThatCannotBeClaimedIsNamedByItsPlace(t *testing.T) {
	s := start(t)
	s.claimErrs = func(at func(v1alpha1.NodeID) *field.Path) field.ErrorList {
		return field.ErrorList{field.Forbidden(at("second"), "no claim")}
	}
	blueprint := object(t, widgets)
	template := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	_ = unstructured.SetNestedSlice(blueprint.Object, []any{
		map[string]any{"id": "first", "template": template}, map[string]any{"id": "second", "template": template},
	}, "spec", "resources")
	_, err := s.main.Create(s.ctx, blueprint, nil, &metav1.CreateOptions{})
	if fields := fieldsOf(t, err); !slices.Equal(fields, []string{"spec.resources[1]"}) {
		t.Errorf("causes at %v", fields)
	}
}

func TestResourceThatCannotBeClaimedIsNamedBesideWhatDoesNotCompile(t *testing.T) {
	s := start(t)
	s.claimErrs = func(at func(v1alpha1.NodeID) *field.Path) field.ErrorList {
		return field.ErrorList{field.Forbidden(at("config").Child("template"), "no claim")}
	}
	_, err := s.tryCreate(t, widgets+`
  resources:
  - id: config
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {size: "${schema.spec.colour}"}}
`)
	fields := fieldsOf(t, err)
	if !slices.Contains(fields, "spec.resources[0].template") || len(fields) < 2 {
		t.Errorf("causes at %v, want both mistakes", fields)
	}
}

// everyMistake can't be claimed, doesn't compile, and needs what krop's user may not do.
const everyMistake = widgets + `
  resources:
  - id: unclaimed
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
  - id: misspelt
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {size: "${schema.spec.colour}"}}
  - id: forbidden
    target: provider
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
`

func TestEveryMistakeIsAnsweredAtOnce(t *testing.T) {
	s := start(t)
	s.rights.deny = func(target v1alpha1.Target, _ plane.Right) bool { return target == v1alpha1.TargetProvider }
	s.claimErrs = func(at func(v1alpha1.NodeID) *field.Path) field.ErrorList {
		return field.ErrorList{field.Forbidden(at("unclaimed").Child("template"), "no claim")}
	}
	for name, test := range map[string]struct {
		blueprint string
		alone     []string // causes that are not those of the other
	}{
		"if the schema takes it": {everyMistake, nil},
		"if the schema doesn't":  {everyMistake + "    deletionPolicy: Keep\n", []string{"spec.resources[2].deletionPolicy"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.tryCreate(t, test.blueprint)
			fields := fieldsOf(t, err)
			want := append(test.alone,
				"spec.resources[0].template",                    // the claim
				"spec.resources[1].template.data.size",          // the expression
				"spec.resources[2].template.metadata.namespace", // the namespace that is to be given
				"spec.resources[2]",                             // the right
			)
			for _, field := range want {
				if !slices.Contains(fields, field) {
					t.Errorf("causes at %v, none at %s: %v", fields, field, err)
				}
			}
			if !strings.Contains(err.Error(), "manifests/provider/40-child-kinds.yaml") {
				t.Errorf("%v doesn't say what to do about rights", err)
			}
		})
	}
}

func TestWhatCannotBeFoundOutDoesNotHideWhatIsWrong(t *testing.T) {
	s := start(t)
	s.rights.err = plane.ErrNotReachable
	_, err := s.tryCreate(t, everyMistake)
	fields := fieldsOf(t, err)
	if !slices.Contains(fields, "spec.resources[1].template.data.size") || slices.Contains(fields, "spec.resources[2]") {
		t.Errorf("causes at %v, want the expression's and none about rights", fields)
	}
}
