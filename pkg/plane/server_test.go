package plane_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/plane/planetest"
)

var write = plane.WriteOptions{FieldManager: manager}

func TestEachTargetIsReachedAtItsOwnAddress(t *testing.T) {
	set, proxy, ns := workspaces(t)
	for target, path := range map[v1alpha1.Target]string{
		v1alpha1.TargetConsumer: "/services/apiexport/provider1/databases.example.org/clusters/consumer1/api/v1/namespaces/",
		v1alpha1.TargetProvider: "/clusters/provider1/api/v1/namespaces/",
	} {
		_, err := planeFor(t, set, target).Get(t.Context(), plane.Object{GVR: configMaps, Namespace: ns, Name: "missing"})
		if !apierrors.IsNotFound(err) || plane.IsNotServed(err) {
			t.Errorf("%s: got %v, want NotFound of the object", target, err)
		}
		seen := proxy.Seen()
		if len(seen) != 1 || !strings.HasPrefix(seen[0], "GET "+path) {
			t.Errorf("%s: requests %q, want one below %s", target, seen, path)
		}
	}
	if _, err := planeFor(t, set, v1alpha1.TargetHost).Get(t.Context(), plane.Object{GVR: configMaps, Namespace: ns, Name: "missing"}); !apierrors.IsNotFound(err) {
		t.Errorf("host: got %v, want NotFound", err)
	}
	if seen := proxy.Seen(); len(seen) != 0 {
		t.Errorf("the host was reached through kcp: %q", seen)
	}
}

func TestDroppedKeyDisappearsHoweverItWasWritten(t *testing.T) {
	set, _, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetConsumer)
	live, err := p.Create(t.Context(), configMaps, configMap(ns, "c", map[string]any{"a": "1", "b": "1"}), write)
	if err != nil {
		t.Fatal(err)
	}
	if got := live.GetManagedFields()[0]; got.Manager != manager || got.Operation != metav1.ManagedFieldsOperationUpdate {
		t.Fatalf("created by %s %s, want an Update of %s", got.Operation, got.Manager, manager)
	}
	// Somebody else's field stays, whatever happens to ours.
	foreign := live.DeepCopy()
	foreign.Object["data"] = map[string]any{"a": "1", "b": "1", "theirs": "1"}
	if live, err = p.Update(t.Context(), configMaps, foreign, plane.WriteOptions{FieldManager: "other"}); err != nil {
		t.Fatal(err)
	}
	if live, err = p.Apply(t.Context(), configMaps, configMap(ns, "c", map[string]any{"a": "2", "c": "2"}), live, write); err != nil {
		t.Fatal(err)
	}
	if got, want := dataOf(t, live), map[string]string{"a": "2", "c": "2", "theirs": "1"}; !maps.Equal(got, want) {
		t.Errorf("after POST and apply: %v, want %v", got, want)
	}
	if live, err = p.Apply(t.Context(), configMaps, configMap(ns, "c", map[string]any{"a": "2"}), live, write); err != nil {
		t.Fatal(err)
	}
	if got, want := dataOf(t, live), map[string]string{"a": "2", "theirs": "1"}; !maps.Equal(got, want) {
		t.Errorf("after a second apply: %v, want %v", got, want)
	}
	// As through a virtual workspace: our own write lands as an Update beside the Apply.
	ours := live.DeepCopy()
	ours.Object["data"] = map[string]any{"a": "2", "d": "3", "theirs": "1"}
	if live, err = p.Update(t.Context(), configMaps, ours, write); err != nil {
		t.Fatal(err)
	}
	if live, err = p.Apply(t.Context(), configMaps, configMap(ns, "c", map[string]any{"e": "4"}), live, write); err != nil {
		t.Fatal(err)
	}
	if got, want := dataOf(t, live), map[string]string{"e": "4", "theirs": "1"}; !maps.Equal(got, want) {
		t.Errorf("after an update and apply: %v, want %v", got, want)
	}
}

func TestApplyConflictsWhenTheObjectIsNoLongerWhatWasObserved(t *testing.T) {
	set, _, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetProvider)
	observed, err := p.Create(t.Context(), configMaps, configMap(ns, "c", map[string]any{"a": "1"}), write)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), configMaps, configMap(ns, "c", nil), write); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v, want AlreadyExists", err)
	}
	changed := observed.DeepCopy()
	changed.SetAnnotations(map[string]string{"changed": "by somebody"})
	if _, err := p.Update(t.Context(), configMaps, changed, plane.WriteOptions{FieldManager: "other"}); err != nil {
		t.Fatal(err)
	}
	desired := configMap(ns, "c", map[string]any{"a": "2"})
	if _, err := p.Apply(t.Context(), configMaps, desired, observed, write); !apierrors.IsConflict(err) {
		t.Errorf("apply on a changed object: %v, want Conflict", err)
	}
	at := plane.Object{GVR: configMaps, Namespace: ns, Name: "c"}
	if err := p.Delete(t.Context(), at, "another-uid"); !apierrors.IsConflict(err) {
		t.Errorf("delete of another UID: %v, want Conflict", err)
	}
	live, err := p.Get(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), at, live.GetUID()); err != nil {
		t.Fatal(err)
	}
	for name, manager := range map[string]string{"owned by update": manager, "owned by nobody": "krop-5678"} {
		if _, err := p.Apply(t.Context(), configMaps, desired, live, plane.WriteOptions{FieldManager: manager}); !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			t.Errorf("apply on a deleted object, %s: %v, want Conflict or NotFound", name, err)
		}
	}
	if _, err := p.Get(t.Context(), at); !apierrors.IsNotFound(err) {
		t.Errorf("the object is back: %v", err)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	set, proxy, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetConsumer)
	dry := plane.WriteOptions{FieldManager: manager, DryRun: true}
	if _, err := p.Create(t.Context(), configMaps, configMap(ns, "c", nil), dry); err != nil {
		t.Fatal(err)
	}
	at := plane.Object{GVR: configMaps, Namespace: ns, Name: "c"}
	if _, err := p.Get(t.Context(), at); !apierrors.IsNotFound(err) {
		t.Fatalf("after a dry-run create: %v, want NotFound", err)
	}
	live, err := p.Create(t.Context(), configMaps, configMap(ns, "c", map[string]any{"a": "1"}), write)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Seen()
	if _, err := p.Apply(t.Context(), configMaps, configMap(ns, "c", map[string]any{"a": "2"}), live, dry); err != nil {
		t.Fatal(err)
	}
	if seen := proxy.Seen(); len(seen) != 1 {
		t.Errorf("requests of a dry-run: %q, want one", seen)
	}
	after, err := p.Get(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if after.GetResourceVersion() != live.GetResourceVersion() {
		t.Errorf("a dry-run changed the object: %v", after.Object)
	}
}

func TestWhatCannotBeReachedIsToldFromWhatIsRefused(t *testing.T) {
	set, proxy, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetProvider)
	at := plane.Object{GVR: configMaps, Namespace: ns, Name: "c"}
	get := func(ctx context.Context) error { _, err := p.Get(ctx, at); return err }

	for _, code := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		proxy.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "no upstream", code)
			return true
		})
		if err := get(t.Context()); !errors.Is(err, plane.ErrNotReachable) {
			t.Errorf("%d of a proxy: %v, want ErrNotReachable", code, err)
		}
	}
	proxy.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := get(ctx); !errors.Is(err, plane.ErrNotReachable) {
		t.Errorf("no answer in time: %v, want ErrNotReachable", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := get(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, plane.ErrNotReachable) {
		t.Errorf("canceled by the caller: %v, want only Canceled", err)
	}
	proxy.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := get(ctx); err == nil || time.Since(began) > 3*time.Second {
		t.Errorf("retries that the server asks for went beyond the deadline: %v after %v", err, time.Since(began))
	}
	proxy.Server.CloseClientConnections()
	proxy.Server.Close()
	if err := get(t.Context()); !errors.Is(err, plane.ErrNotReachable) {
		t.Errorf("connection refused: %v, want ErrNotReachable", err)
	}
}

func TestPlaneWithoutEndpointIsNotReachable(t *testing.T) {
	set, err := plane.New(plane.Config{Kcp: server.Admin, Endpoints: endpoint{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.For(t.Context(), v1alpha1.TargetConsumer, export, "consumer1"); !errors.Is(err, plane.ErrNotReachable) {
		t.Errorf("consumer: %v, want ErrNotReachable", err)
	}
	if _, err := set.For(t.Context(), v1alpha1.TargetHost, export, "consumer1"); !errors.Is(err, plane.ErrNoHost) {
		t.Errorf("host: %v, want ErrNoHost", err)
	}
}

func TestDenialIsToldFromAdmission(t *testing.T) {
	proxy := planetest.NewWorkspaces(t, server.Krop)
	set, err := plane.New(plane.Config{Kcp: proxy.User(server.Krop), Endpoints: endpoint{proxy.URL}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = planeFor(t, set, v1alpha1.TargetProvider).Create(t.Context(), secrets, configMap("default", "s", nil), write)
	denial, ok := plane.DeniedBy(err)
	if want := (plane.Denial{Verb: "create", Resource: secrets.GroupResource()}); !ok || denial != want {
		t.Errorf("got %+v of %v, want %+v", denial, err, want)
	}
	quota := apierrors.NewForbidden(secrets.GroupResource(), "s", errors.New("exceeded quota: small, requested: secrets=1"))
	if denial, ok := plane.DeniedBy(quota); ok {
		t.Errorf("a quota was taken for a denial: %+v", denial)
	}
}

func TestNamesThatNoPathCanHoldAreInvalid(t *testing.T) {
	set, _, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetProvider)
	for _, name := range []string{"", "..", "a/b", "a%2fb"} {
		_, err := p.Get(t.Context(), plane.Object{GVR: configMaps, Namespace: ns, Name: name})
		if !apierrors.IsInvalid(err) {
			t.Errorf("%q: %v, want Invalid", name, err)
		}
	}
}

func TestUnknownResourceIsNotServed(t *testing.T) {
	set, _, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetProvider)
	gvr := configMaps
	gvr.Group, gvr.Resource = "nobody.example.org", "nothings"
	if _, err := p.Get(t.Context(), plane.Object{GVR: gvr, Namespace: ns, Name: "x"}); !plane.IsNotServed(err) {
		t.Errorf("got %v, want not served", err)
	}
	if err := p.Delete(t.Context(), plane.Object{GVR: configMaps, Namespace: ns, Name: "x"}, types.UID("u")); !apierrors.IsNotFound(err) || plane.IsNotServed(err) {
		t.Errorf("got %v, want NotFound of the object", err)
	}
}

func TestDryRunToleratesWhatTheRealApplyRemoves(t *testing.T) {
	set, _, ns := workspaces(t)
	p := planeFor(t, set, v1alpha1.TargetConsumer)
	gvr := configMaps
	gvr.Group, gvr.Version, gvr.Resource = strings.ReplaceAll(ns, "-", "")+".example.org", "v1", "widgets"
	createWidgetKind(t, gvr.Group, apiextensionsv1.ValidationRule{Rule: "!(has(self.a) && has(self.b))", Message: "a excludes b"})
	widget := func(spec map[string]any) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		object.SetAPIVersion(gvr.GroupVersion().String())
		object.SetKind("Widget")
		object.SetNamespace(ns)
		object.SetName("w")
		return object
	}
	one := map[string]any{"value": int64(1)}
	var live *unstructured.Unstructured
	eventually(t, func() bool {
		var err error
		live, err = p.Create(t.Context(), gvr, widget(map[string]any{"a": one}), write)
		return err == nil
	})
	dry := plane.WriteOptions{FieldManager: manager, DryRun: true}
	answer, err := p.Apply(t.Context(), gvr, widget(map[string]any{"b": one}), live, dry)
	if err != nil {
		t.Fatalf("refused for a field that is dropped: %v", err)
	}
	if spec := answer.Object["spec"].(map[string]any); spec["a"] != nil || spec["b"] == nil {
		t.Errorf("answered with %v", spec)
	}
	if _, err := p.Apply(t.Context(), gvr, widget(map[string]any{"a": one, "b": one}), live, dry); !apierrors.IsInvalid(err) {
		t.Errorf("got %v, want Invalid", err)
	}
	if _, err := p.Apply(t.Context(), gvr, widget(map[string]any{"b": one}), live, write); err != nil {
		t.Errorf("the real apply: %v", err)
	}
}
