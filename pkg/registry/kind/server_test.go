package kind

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

// server puts upstream's handlers over one store, as the API server does, without any of its filters:
// /clusters/<cluster>/apis/...
type server struct {
	store *Store
	url   string
}

func serve(t *testing.T, store *Store) *server {
	t.Helper()
	s := &server{store: store}
	listener := httptest.NewServer(filters.WithRequestReceivedTimestamp(filters.WithAuditInit(filters.WithWarningRecorder(s))))
	t.Cleanup(listener.Close)
	s.url = listener.URL
	return s
}

var requestInfos = request.RequestInfoFactory{APIPrefixes: sets.NewString("apis"), GrouplessAPIPrefixes: sets.NewString()}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cluster, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/clusters/"), "/")
	r.URL.Path = "/" + path
	info, err := requestInfos.NewRequestInfo(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx := request.WithRequestInfo(r.Context(), info)
	ctx = request.WithUser(ctx, &user.DefaultInfo{Name: "tester"})
	ctx = etcd.WithCluster(ctx, logicalcluster.Name(cluster))
	if deadline := r.URL.Query().Get("timeout"); deadline == "" && info.Verb != "watch" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	s.handler(info)(w, r.WithContext(ctx))
}

func (s *server) handler(info *request.RequestInfo) http.HandlerFunc {
	scope := *s.store.Kind.Scope()
	scope.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	main := s.store.Main
	if info.Subresource == "status" && info.Verb == "get" {
		return handlers.GetResource(s.store.Status, s.store.Kind.StatusScope())
	}
	if info.Subresource == "status" && info.Verb == "update" {
		return handlers.UpdateResource(s.store.Status, s.store.Kind.StatusScope(), nil)
	}
	switch info.Verb {
	case "get":
		return handlers.GetResource(main, &scope)
	case "list", "watch":
		return handlers.ListResource(main, main, &scope, info.Verb == "watch", time.Minute)
	case "create":
		return handlers.CreateResource(main, &scope, nil)
	case "update":
		return handlers.UpdateResource(main, &scope, nil)
	case "patch":
		return handlers.PatchResource(main, &scope, nil, []string{
			string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType),
		})
	case "delete":
		return handlers.DeleteResource(main, true, &scope, nil)
	case "deletecollection":
		return handlers.DeleteCollection(main, true, &scope, nil)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		err := apierrors.NewMethodNotSupported(s.store.Kind.GVR().GroupResource(), info.Verb)
		responsewriters.ErrorNegotiated(err, serializer.NewCodecFactory(apiTypes), s.store.Kind.GVK().GroupVersion(), w, r)
	}
}

// client is an unmodified client for one logical cluster; what it is warned of goes to warnings.
func (s *server) client(t *testing.T, cluster logicalcluster.Name, warnings *warnings) dynamic.NamespaceableResourceInterface {
	t.Helper()
	config := &rest.Config{Host: s.url + "/clusters/" + cluster.String(), QPS: -1}
	config.WarningHandler = warnings
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(s.store.Kind.GVR())
}

// fetch gets a path of the kind with some Accept header, as bytes.
func (s *server) fetch(t *testing.T, cluster logicalcluster.Name, path, accept string) (status int, contentType string, body []byte) {
	t.Helper()
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host:          s.url,
		ContentConfig: rest.ContentConfig{NegotiatedSerializer: serializer.NewCodecFactory(runtime.NewScheme())},
	})
	if err != nil {
		t.Fatal(err)
	}
	gv := s.store.Kind.GVK().GroupVersion()
	result := client.Get().AbsPath("/clusters/"+cluster.String()+"/apis/"+gv.String()+path).
		SetHeader("Accept", accept).Do(t.Context())
	result.StatusCode(&status).ContentType(&contentType)
	body, _ = result.Raw()
	return status, contentType, body
}

// warnings collects Warning headers.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	if w != nil {
		w.texts = append(w.texts, text)
	}
}
