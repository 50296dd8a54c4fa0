package blueprint_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
)

// values are etcd's, as long as a test doesn't take them away.
type values struct {
	blueprint.Values
	puts int
	err  error
}

func (v *values) Put(ctx context.Context, name string, value []byte) error {
	if v.err != nil {
		return v.err
	}
	v.puts++
	return v.Values.Put(ctx, name, value)
}

const valueName = "provider1/widgets"

func TestBlueprintThatDoesNotCompileIsServedAsItDidLastAfterARestart(t *testing.T) {
	for name, broken := range map[string]planes{"gone": {gone: true}, "changed": {values: "integer"}} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.create(t, sized)
			before := s.served(t)
			s.kinds.are(broken)
			s.renew()
			if err := s.ensure(t); !apierrors.IsInvalid(err) {
				t.Fatalf("%v, want what is wrong, so that it is tried again", err)
			}
			after := s.served(t)
			if after.SpecHash != before.SpecHash || after.Kinds.Hash() != before.Kinds.Hash() || len(after.Nodes) != len(before.Nodes) || after.Nodes[0].GVR != before.Nodes[0].GVR {
				t.Errorf("serves %+v, want %+v", after, before)
			}
			s.addInstance(t)
			if compiled := s.condition(t, v1alpha1.ConditionCompiled); compiled.Status != metav1.ConditionFalse || !strings.Contains(compiled.Message, "spec.resources[0].template") {
				t.Errorf("%+v", compiled)
			}
			s.kinds.are(planes{})
			if err := s.ensure(t); err != nil || s.condition(t, v1alpha1.ConditionReady).Status != metav1.ConditionTrue {
				t.Errorf("%v; not ready although everything is as it was", err)
			}
		})
	}
}

func TestWhatIsNotKnownIsHeldAfterARestart(t *testing.T) {
	for name, lose := range map[string]func(*setup, *testing.T){
		"never kept": func(s *setup, t *testing.T) {
			if err := s.values.Delete(t.Context(), valueName); err != nil {
				t.Fatal(err)
			}
		},
		"no longer readable": func(s *setup, t *testing.T) {
			if err := s.values.Put(t.Context(), valueName, []byte("rust")); err != nil {
				t.Fatal(err)
			}
		},
		"of an earlier spec": func(s *setup, t *testing.T) {
			s.values.err = errors.New("etcd is away")
			if _, err := s.edit(t, false, `"${schema.spec.size}"`, `"${schema.spec.size + 'x'}"`); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.create(t, sized)
			lose(s, t)
			s.kinds.are(planes{values: "integer"})
			s.renew()
			if err := s.ensure(t); !apierrors.IsInvalid(err) || !s.catalog.Held(export) {
				t.Errorf("%v, held %v", err, s.catalog.Held(export))
			}
		})
	}
}

func TestWhatABlueprintWasCompiledAgainstIsKeptOncePerProgramAndGoesWithIt(t *testing.T) {
	s := start(t)
	s.create(t, sized)
	for range 3 {
		if err := s.ensure(t); err != nil {
			t.Fatal(err)
		}
	}
	if s.values.puts != 1 {
		t.Errorf("written %d times, want once", s.values.puts)
	}
	if _, gone, err := s.main.Delete(s.ctx, "widgets", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil || !gone {
		t.Fatalf("gone %v, %v", gone, err)
	}
	if err := s.ensure(t); err != nil {
		t.Fatal(err)
	}
	if left, err := s.values.Get(t.Context(), valueName); left != nil || err != nil {
		t.Errorf("%d bytes are left, %v", len(left), err)
	}
}
