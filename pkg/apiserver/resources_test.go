package apiserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// config is a client's, for one cluster, as whoever holds the certificate.
func (b *bed) config(who *pki.Pair, cluster string) *rest.Config {
	return &rest.Config{
		Host: "https://localhost:" + b.port() + base + cluster,
		TLSClientConfig: rest.TLSClientConfig{
			CertFile: who.CertFile, KeyFile: who.KeyFile, CAFile: b.pki.CAFile(pki.Serving),
		},
	}
}

func (b *bed) port() string { return b.address[strings.LastIndex(b.address, ":")+1:] }

func (b *bed) dynamic(t *testing.T, who *pki.Pair, cluster string) dynamic.NamespaceableResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(b.config(who, cluster))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(gvr)
}

func widget(name, size string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"size": size},
	}}
}

func TestDynamicClientDoesEveryVerb(t *testing.T) {
	b := start(t)
	ctx := t.Context()
	widgets := b.dynamic(t, b.client(t, pki.Client, shard), consumer.String()).Namespace("default")

	created, err := widgets.Create(ctx, widget("one", "small"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(created.Object, "large", "spec", "size")
	if _, err := widgets.Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := widgets.Update(ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v, want Conflict", err)
	}
	patched, err := widgets.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"size":"tiny"}}`), metav1.PatchOptions{})
	if err != nil || size(patched) != "tiny" {
		t.Errorf("merge patch: %v, %v", patched, err)
	}
	patched, err = widgets.Patch(ctx, "one", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/size","value":"huge"}]`), metav1.PatchOptions{})
	if err != nil || size(patched) != "huge" {
		t.Errorf("JSON patch: %v, %v", patched, err)
	}
	if _, err := widgets.Apply(ctx, "one", widget("one", "other"), metav1.ApplyOptions{FieldManager: "second"}); !apierrors.IsConflict(err) {
		t.Errorf("apply of a field that another manager owns: %v, want Conflict", err)
	}
	if _, err := widgets.Apply(ctx, "two", widget("two", "applied"), metav1.ApplyOptions{FieldManager: "second"}); err != nil {
		t.Errorf("apply that creates: %v", err)
	}
	list, err := widgets.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil || len(list.Items) != 1 || list.GetContinue() == "" {
		t.Errorf("list with a limit: %v, %v", list, err)
	}
	if _, err := widgets.Create(ctx, widget("three", "x"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	if _, err := widgets.Get(ctx, "three", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v, want NotFound", err)
	}
	if err := widgets.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if list, err := widgets.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("after deletecollection: %v, %v", list, err)
	}
}

func TestClustersDoNotSeeEachOther(t *testing.T) {
	b := start(t)
	ctx := t.Context()
	who := b.client(t, pki.Client, shard)
	for _, cluster := range []string{consumer.String(), otherConsumer.String()} {
		if _, err := b.dynamic(t, who, cluster).Namespace("default").Create(ctx, widget("same", cluster), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.dynamic(t, who, consumer.String()).Namespace("default").Get(ctx, "same", metav1.GetOptions{})
	if err != nil || size(got) != consumer.String() || got.GetAnnotations()["kcp.io/cluster"] != consumer.String() {
		t.Errorf("%v, %v", got, err)
	}
	all, err := b.dynamic(t, who, "*").List(ctx, metav1.ListOptions{})
	if err != nil || len(all.Items) != 2 {
		t.Errorf("across clusters: %v, %v", all, err)
	}
}

func TestInformerFollows(t *testing.T) {
	b := start(t)
	client, err := dynamic.NewForConfig(b.config(b.client(t, pki.Client, shard), consumer.String()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	informer := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(gvr)
	go informer.Informer().Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		t.Fatal("the informer doesn't sync")
	}
	widgets := client.Resource(gvr).Namespace("default")
	if _, err := widgets.Create(ctx, widget("one", "small"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(ctx, t, "added", func() bool { _, err := informer.Lister().ByNamespace("default").Get("one"); return err == nil })
	if err := widgets.Delete(ctx, "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(ctx, t, "deleted", func() bool {
		_, err := informer.Lister().ByNamespace("default").Get("one")
		return apierrors.IsNotFound(err)
	})
}

func waitFor(ctx context.Context, t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) { return done(), nil }); err != nil {
		t.Fatalf("never %s", what)
	}
}

func TestStatusIsReadOnly(t *testing.T) {
	b := start(t)
	ctx := t.Context()
	widgets := b.dynamic(t, b.client(t, pki.Client, shard), consumer.String()).Namespace("default")
	created, err := widgets.Create(ctx, widget("one", "small"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := widgets.Get(ctx, "one", metav1.GetOptions{}, "status"); err != nil {
		t.Error(err)
	}
	if _, err := widgets.UpdateStatus(ctx, created, metav1.UpdateOptions{}); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("update: %v, want MethodNotAllowed", err)
	}
	if _, err := widgets.Patch(ctx, "one", types.MergePatchType, []byte(`{"status":{"state":"x"}}`), metav1.PatchOptions{}, "status"); !apierrors.IsMethodNotSupported(err) {
		t.Errorf("patch: %v, want MethodNotAllowed", err)
	}
}

func TestWhatIsNotServedIsNotFound(t *testing.T) {
	b := start(t)
	who := b.client(t, pki.Client, shard)
	for _, path := range []string{
		"/apis/example.org/v2/widgets", "/apis/example.com/v1/widgets", "/apis/example.org/v1/others", "/apis/example.org/v1/namespaces",
		"/apis/example.org/v1/namespaces/default/widgets/one/scale", "/apis/example.org/v1/namespaces/default/widgets/one/status/more",
		"/apis/example.org/v1/widgets/one", "/apis/example.org", "/apis/example.org/v2", "/openapi/v3/apis/example.org/v2", "/openapi/v2",
	} {
		got := b.get(t, who, base+consumer.String()+path)
		if path == "/apis/example.org" { // this one is
			if got.code != http.StatusOK {
				t.Errorf("%s: %d", path, got.code)
			}
			continue
		}
		status := metav1.Status{}
		if err := json.Unmarshal([]byte(got.body), &status); err != nil || got.code != http.StatusNotFound || status.Kind != "Status" || status.Reason != metav1.StatusReasonNotFound {
			t.Errorf("%s: %d %s", path, got.code, got.body)
		}
	}
}

func TestUnknownExportIsNotProofBeforeTheCatalogIsLoaded(t *testing.T) {
	b := start(t)
	b.catalog.Remove(export)
	who := b.client(t, pki.Client, shard)
	path := base + consumer.String() + apis + "/namespaces/default/widgets/one"
	if got := b.get(t, who, path); got.code != http.StatusNotFound {
		t.Errorf("loaded: %d, want 404", got.code)
	}
	fresh := startUnsynced(t)
	wantTryAgain(t, fresh.get(t, fresh.client(t, pki.Client, shard), path))
	if got := fresh.get(t, nil, "/readyz"); got.code == http.StatusOK {
		t.Error("ready before the catalog is loaded")
	}
	if got := fresh.get(t, nil, "/livez"); got.code != http.StatusOK {
		t.Errorf("livez: %d", got.code)
	}
}

func TestDiscoveryHasTrueVerbs(t *testing.T) {
	b := start(t)
	for _, cluster := range []string{consumer.String(), "*"} {
		client, err := discovery.NewDiscoveryClientForConfig(b.config(b.client(t, pki.Client, shard), cluster))
		if err != nil {
			t.Fatal(err)
		}
		list, err := client.ServerResourcesForGroupVersion("example.org/v1")
		if err != nil {
			t.Fatal(err)
		}
		if len(list.APIResources) != 2 || list.APIResources[0].Name != "widgets" || list.APIResources[1].Name != "widgets/status" {
			t.Fatalf("%+v", list.APIResources)
		}
		verbs := slices.Sorted(slices.Values([]string(list.APIResources[0].Verbs)))
		if want := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}; !slices.Equal(verbs, want) {
			t.Errorf("verbs %v", verbs)
		}
		if got := list.APIResources[1].Verbs; !slices.Equal(got, metav1.Verbs{"get"}) {
			t.Errorf("verbs of status %v", got)
		}
		groups, resources, err := client.ServerGroupsAndResources() // aggregated
		if err != nil || len(groups) != 1 || len(resources) != 1 || resources[0].APIResources[0].ShortNames[0] != "wd" {
			t.Errorf("aggregated: %v, %v, %v", groups, resources, err)
		}
	}
}

func TestOpenAPIIsFoundByAClient(t *testing.T) {
	b := start(t)
	client, err := discovery.NewDiscoveryClientForConfig(b.config(b.client(t, pki.Client, shard), consumer.String()))
	if err != nil {
		t.Fatal(err)
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	document, err := paths["apis/example.org/v1"].Schema("application/json")
	if err != nil || !strings.Contains(string(document), `"size"`) {
		t.Errorf("%v: %.200s", err, document)
	}
	if _, err := paths["apis/example.org/v1"].Schema("application/com.github.proto-openapi.spec.v3@v1.0+protobuf"); err != nil {
		t.Error(err)
	}
}

func TestDiscoveryFollowsASwappedKind(t *testing.T) {
	b := start(t)
	who := b.client(t, pki.Client, shard)
	b.get(t, who, base+"*"+apis)
	crd := definition()
	crd.Spec.Names.ShortNames = []string{"swapped"}
	b.catalog.Set(servedAs(export, openStore(t, crd)))
	if got := b.get(t, who, base+"*"+apis); !strings.Contains(got.body, "swapped") {
		t.Errorf("%d %s", got.code, got.body)
	}
}

func TestApplyThatCreatesNeedsTheRightToCreate(t *testing.T) {
	b := start(t)
	b.reviews.answerWith(func(spec authorizationv1.SubjectAccessReviewSpec) bool {
		return spec.ResourceAttributes != nil && spec.ResourceAttributes.Verb == "patch"
	}, nil)
	alice := b.dynamic(t, b.client(t, pki.Client, "alice"), consumer.String()).Namespace("default")
	if _, err := alice.Apply(t.Context(), "one", widget("one", "x"), metav1.ApplyOptions{FieldManager: "alice"}); !apierrors.IsForbidden(err) {
		t.Errorf("create by apply with the right to patch only: %v, want Forbidden", err)
	}
	shards := b.dynamic(t, b.client(t, pki.Client, shard), consumer.String()).Namespace("default")
	if _, err := shards.Create(t.Context(), widget("one", "x"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.Apply(t.Context(), "one", widget("one", "x"), metav1.ApplyOptions{FieldManager: "alice"}); err != nil {
		t.Errorf("apply to what exists: %v", err)
	}
}

func size(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(object.Object, "spec", "size")
	return value
}
