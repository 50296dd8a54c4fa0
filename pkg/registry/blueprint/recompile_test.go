package blueprint_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/engine/kro"
	"go.opendefense.cloud/krop/pkg/registry/blueprint"
)

// sized composes a ConfigMap of an instance's size, and shows what becomes of it.
const sized = widgets + `
  resources:
  - id: config
    template: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {size: "${schema.spec.size}"}}
`

// planes is what they serve: ConfigMaps, whose data are strings until a test says otherwise.
type planes struct {
	values string // the type of data; "string" if empty
	gone   bool
	news   string        // something else has changed in the document that describes ConfigMaps
	recent time.Duration // since a change was told of; 0 for long ago
}

func (p planes) used(target v1alpha1.Target, gvk schema.GroupVersionKind) engine.UsedKind {
	used := engine.UsedKind{Target: target, GVK: gvk, Document: "document " + p.news + p.values}
	used.Hash = "hash " + p.values
	if p.gone {
		used.Hash, used.Document = "", ""
	}
	return used
}

// kinds is the planes as they are now.
type kinds struct {
	mutex sync.Mutex
	now   planes
	looks int // how often they were asked for a schema
}

func (k *kinds) are(now planes) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.now = now
}

func (k *kinds) asked() int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.looks
}

// look is one look at them. What is in it doesn't change any more.
func (k *kinds) look() *look {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return &look{of: k, now: k.now}
}

// Changed implements blueprint.Changes.
func (k *kinds) Changed(logicalcluster.Name, engine.UsedKinds) (time.Duration, bool) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.now.recent, k.now.recent > 0
}

type look struct {
	of   *kinds
	now  planes
	used engine.UsedKinds
}

func (l *look) Resolve(target v1alpha1.Target, gvk schema.GroupVersionKind) (kro.Kind, error) {
	l.of.mutex.Lock()
	l.of.looks++
	l.of.mutex.Unlock()
	l.used = append(l.used, l.now.used(target, gvk))
	if l.now.gone {
		return kro.Kind{}, &kro.KindNotFoundError{Target: target, GVK: gvk}
	}
	kind, err := configMaps{}.Resolve(target, gvk)
	if err == nil && l.now.values != "" {
		data := kind.Schema.Properties["data"]
		data.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{l.now.values}}}}
		kind.Schema.Properties["data"] = data
	}
	return kind, err
}

func (l *look) Kinds() engine.UsedKinds { return l.used }

func (l *look) Unchanged(kinds engine.UsedKinds, thorough bool) (bool, error) {
	return !slices.ContainsFunc(kinds, func(was engine.UsedKind) bool {
		is := l.now.used(was.Target, was.GVK)
		if !thorough && is.Document == was.Document {
			return false
		}
		return is.Hash != was.Hash
	}), nil
}

func (s *setup) served(t *testing.T) *engine.Program {
	t.Helper()
	served, ok := s.catalog.Lookup(export)
	if !ok {
		t.Fatal("not served")
	}
	return served.Program
}

func (s *setup) condition(t *testing.T, of string) metav1.Condition {
	t.Helper()
	found := meta.FindStatusCondition(s.get(t).Status.Conditions, of)
	if found == nil {
		t.Fatalf("no condition %s", of)
	}
	return *found
}

func TestBlueprintIsCompiledAgainOnlyIfAKindOfItsHasChanged(t *testing.T) {
	s := start(t)
	s.create(t, sized)
	first := s.served(t)
	for name, quiet := range map[string]planes{
		"nothing": {}, "another kind of the group": {news: "another"}, "an event without effect": {recent: time.Second},
	} {
		s.kinds.are(quiet)
		looks := s.kinds.asked()
		if err := s.ensure(t); err != nil {
			t.Fatal(err)
		}
		if s.served(t) != first || s.kinds.asked() != looks {
			t.Errorf("%s has changed, and the blueprint was compiled again", name)
		}
	}
	s.kinds.are(planes{values: "integer"})
	if err := s.ensure(t); err == nil || s.kinds.asked() == 0 {
		t.Errorf("%v: a change that breaks the blueprint was not noticed without an event", err)
	}
}

func TestAPIThatIsBoundAnewIsClaimedAnew(t *testing.T) {
	s := start(t)
	s.create(t, sized)
	s.claimed = []v1alpha1.PermissionClaim{{Resource: "configmaps", IdentityHash: "another", Verbs: []string{"get"}}}
	s.kinds.are(planes{recent: time.Second})
	if err := s.ensure(t); err != nil {
		t.Fatal(err)
	}
	if claims := s.get(t).Status.PermissionClaims; len(claims) != 1 || claims[0].IdentityHash != "another" {
		t.Errorf("claims are %v", claims)
	}
}

func TestBlueprintThatDoesNotCompileAnyMoreIsServedAsItDidLast(t *testing.T) {
	for name, broken := range map[string]planes{"gone": {gone: true}, "changed": {values: "integer"}} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.create(t, sized)
			last := s.served(t)
			s.kinds.are(broken)
			if err := s.ensure(t); !apierrors.IsInvalid(err) {
				t.Fatalf("%v, want what is wrong, so that it is tried again", err)
			}
			if s.served(t) != last {
				t.Error("another program is served")
			}
			s.addInstance(t)
			for _, name := range []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionReady} {
				if condition := s.condition(t, name); condition.Status != metav1.ConditionFalse || condition.Reason != v1alpha1.ReasonCompileFailed ||
					!strings.Contains(condition.Message, "spec.resources[0].template") {
					t.Errorf("%+v", condition)
				}
			}
			if published := s.condition(t, v1alpha1.ConditionPublished); published.Status != metav1.ConditionTrue {
				t.Errorf("%+v", published)
			}
			looks, published := s.kinds.asked(), s.publisher.published
			if err := s.ensure(t); !apierrors.IsInvalid(err) || s.kinds.asked() != looks {
				t.Errorf("%v, or compiled again although nothing has changed", err)
			}
			if s.publisher.published != published+1 {
				t.Error("what is published is not kept up")
			}
			s.kinds.are(planes{})
			if err := s.ensure(t); err != nil {
				t.Fatal(err)
			}
			if ready := s.condition(t, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || s.loop.again != 1 {
				t.Errorf("%+v, and instances looked at %d times, want once", ready, s.loop.again)
			}
		})
	}
}

func TestBlueprintThatCannotBeCheckedStaysAsItIs(t *testing.T) {
	s := start(t)
	s.create(t, sized)
	before := s.stored(t).GetResourceVersion()
	s.schemasErr = apierrors.NewServiceUnavailable("the workspace is away")
	if err := s.ensure(t); err == nil {
		t.Error("nothing is left to be tried again")
	}
	if now := s.stored(t).GetResourceVersion(); now != before {
		t.Error("a plane that can't be reached has changed the blueprint's status")
	}
}

func TestOnlyBlueprintsThatUseAKindAreConcernedByIt(t *testing.T) {
	s := start(t)
	if !s.main.Uses(key, v1alpha1.TargetProvider, "example.org") {
		t.Error("nothing is known of it yet, so it may be")
	}
	s.create(t, sized)
	for _, test := range []struct {
		target v1alpha1.Target
		group  string
		want   bool
	}{
		{v1alpha1.TargetProvider, "", true}, {v1alpha1.TargetProvider, "example.org", false}, {v1alpha1.TargetHost, "", false},
	} {
		if got := s.main.Uses(key, test.target, test.group); got != test.want {
			t.Errorf("%s %q: %v, want %v", test.target, test.group, got, test.want)
		}
	}
}

func TestWhoIsQuickerThanThePlanesIsNotRefusedForIt(t *testing.T) {
	s := start(t)
	s.kinds.are(planes{gone: true, recent: time.Second})
	answer := make(chan error, 1)
	go func() {
		_, err := s.tryCreate(t, sized)
		answer <- err
	}()
	for s.kinds.asked() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.kinds.are(planes{recent: time.Second})
	if err := <-answer; err != nil {
		t.Error(err)
	}
	s.kinds.are(planes{gone: true, recent: 20 * time.Second})
	if _, err := s.tryCreate(t, strings.ReplaceAll(sized, "name: widgets", "name: others")); !apierrors.IsInvalid(err) {
		t.Errorf("%v, want to be refused for a kind that nobody has just defined", err)
	}
}

var _ blueprint.Schemas = &look{}
