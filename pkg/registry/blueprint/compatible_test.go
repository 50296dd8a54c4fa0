package blueprint_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// holders are the workspaces that have bound the export.
type holders struct {
	clusters []logicalcluster.Name
	unknown  bool
}

func (h *holders) Holders(context.Context, v1alpha1.ExportKey) (sets.Set[logicalcluster.Name], bool) {
	return sets.New(h.clusters...), !h.unknown
}

// warnings collects what a client is warned of.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// edit applies the blueprint with its text changed.
func (s *setup) edit(t *testing.T, annotate bool, replace ...string) (warned warnings, err error) {
	t.Helper()
	changed := object(t, strings.NewReplacer(replace...).Replace(sized))
	if annotate {
		changed.SetAnnotations(map[string]string{v1alpha1.AnnotationAllowBreaking: "true"})
	}
	changed.SetResourceVersion(s.stored(t).GetResourceVersion())
	changed.SetFinalizers(s.stored(t).GetFinalizers())
	_, _, err = s.main.Update(warning.WithWarningRecorder(s.ctx, &warned), "widgets",
		rest.DefaultUpdatedObjectInfo(changed), nil, nil, false, &metav1.UpdateOptions{DryRun: s.dryRun})
	return warned, err
}

// breaking makes the size a number, and takes away what expects a text.
var breaking = []string{"size: string", "size: 'integer | maximum=9'", `"${schema.spec.size}"`, "x"}

func TestBreakingEditIsRefusedByField(t *testing.T) {
	s := start(t)
	s.create(t, sized)
	s.holders.clusters = []logicalcluster.Name{"consumer1"}
	_, err := s.edit(t, false, breaking...)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("%v, want Invalid", err)
	}
	var fields []string
	for _, cause := range causes(err) {
		fields = append(fields, cause.Field)
	}
	if got := strings.Join(fields, " "); got != "spec.schema.spec.size metadata.annotations["+v1alpha1.AnnotationAllowBreaking+"]" {
		t.Errorf("refused for %s", got)
	}
	if s.get(t).Status.ObservedSpecHash != s.served(t).SpecHash {
		t.Error("a refused edit has had an effect")
	}
}

func TestBreakingEditIsAllowedWhereNobodyReliesOnTheSchemaOrTheAuthorSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		holders   holders
		instances int
		annotate  bool
		refused   bool
	}{
		"nobody has bound it":          {},
		"bound":                        {holders: holders{clusters: []logicalcluster.Name{"c"}}, refused: true},
		"bound and annotated":          {holders: holders{clusters: []logicalcluster.Name{"c"}}, annotate: true},
		"instances of who has unbound": {instances: 1, refused: true},
		"nobody knows who has bound":   {holders: holders{unknown: true}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.create(t, sized)
			for range test.instances {
				s.addInstance(t)
			}
			s.holders = test.holders
			warned, err := s.edit(t, test.annotate, breaking...)
			if refused := apierrors.IsInvalid(err); refused != test.refused || err != nil && !refused {
				t.Errorf("%v, want refused: %v", err, test.refused)
			}
			if test.annotate != (len(warned) == 1 && strings.Contains(warned[0], "spec.schema.spec.size")) {
				t.Errorf("warned of %q", warned)
			}
		})
	}
}

func TestBreakingEditThatDoesNotCompileIsRefusedForBoth(t *testing.T) {
	s := start(t)
	s.create(t, sized)
	s.holders.clusters = []logicalcluster.Name{"consumer1"}
	_, err := s.edit(t, false, "size: string", "size: integer")
	var fields []string
	for _, cause := range causes(err) {
		fields = append(fields, cause.Field)
	}
	for _, want := range []string{"spec.resources[0].template.data.size", "spec.schema.spec.size"} {
		if !slices.Contains(fields, want) {
			t.Errorf("refused for %v, want %s among them", fields, want)
		}
	}
}

func TestEditThatBreaksNothingIsNobodysBusiness(t *testing.T) {
	s := start(t)
	s.create(t, sized)
	s.holders.unknown = true
	for name, replace := range map[string][]string{
		"a field more":          {"size: string", "size: string, count: integer"},
		"another child":         {`"${schema.spec.size}"`, "x"},
		"a status field more":   {"size: string}", "size: string}, status: {shown: '${config.metadata.name}'}"},
		"a default for a field": {"size: string", "size: 'string | required=true default=x'"},
	} {
		if warned, err := s.edit(t, false, replace...); err != nil || len(warned) > 0 {
			t.Errorf("%s: %v, %v", name, err, warned)
		}
		if _, err := s.edit(t, true); err != nil { // back
			t.Fatal(err)
		}
	}
}

// TestBreakingEditIsRefusedAlsoIfTheBlueprintIsNotServed: what the author has written of the spec is known all the same.
func TestBreakingEditIsRefusedAlsoIfTheBlueprintIsNotServed(t *testing.T) {
	s := start(t)
	s.create(t, sized)
	s.catalog.Remove(export) // as after a restart, at which it has not compiled
	s.catalog.Hold(export, "widgets")
	s.holders.clusters = []logicalcluster.Name{"consumer1"}
	if _, err := s.edit(t, false, breaking...); !apierrors.IsInvalid(err) {
		t.Errorf("%v, want Invalid", err)
	}
}

func causes(err error) []metav1.StatusCause {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}
