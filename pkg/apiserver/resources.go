package apiserver

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/registry"
)

const statusSubresource = "status"

// patchTypes are those of any custom resource; strategic merge needs Go types.
var patchTypes = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}

// serveResource answers a request for objects of a served kind with the handlers of k8s.io/apiserver.
func (s *exports) serveResource(w http.ResponseWriter, r *http.Request, served *registry.Served, info *request.RequestInfo) {
	handler, err := s.resourceHandler(served, info)
	if err == nil && routeFrom(r.Context()).wildcard() && info.Verb != "list" && info.Verb != "watch" {
		err = notAllowed("across logical clusters, objects can only be listed and watched")
	}
	if err != nil {
		writeStatus(w, r, err)
		return
	}
	labels := metricLabelsFor(served)
	if info.Verb == "watch" {
		leave, err := s.watching(r)
		if err != nil {
			writeStatus(w, r, err)
			return
		}
		defer leave()
	}
	metrics.InstrumentHandlerFunc(strings.ToUpper(info.Verb), labels.group, labels.version, labels.resource, info.Subresource,
		metrics.CleanScope(info), metrics.APIServerComponent, false, "", s.withinBounds(served, handler))(w, r)
}

// watching counts a watch of one cluster's objects until leave is called. Shards watch all of them at once.
func (s *exports) watching(r *http.Request) (leave func(), err error) {
	found := routeFrom(r.Context())
	if found.wildcard() {
		return func() {}, nil
	}
	leave, err = s.watches.Enter(r.Context(), found.cluster.String())
	if err != nil {
		return nil, tooMany(s.limits.Exceeded(budget.WatchesPerConsumer, "more").Error())
	}
	return leave, nil
}

// resourceHandler finds the handler for what is asked, by the kind's routing table.
func (s *exports) resourceHandler(served *registry.Served, info *request.RequestInfo) (http.HandlerFunc, error) {
	resource := served.Kind.GVR()
	asked := schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource}
	if asked != resource || !scopeFits(served, info) {
		return nil, noSuchResource(info)
	}
	const nameAndSubresource = 3 // resource/name/subresource
	if len(info.Parts) > nameAndSubresource {
		return nil, noSuchResource(info)
	}
	var handler http.HandlerFunc
	switch info.Subresource {
	case "":
		handler = s.mainHandler(served, info)
	case statusSubresource:
		storage, ok := served.Storage[resource.Resource+"/"+statusSubresource]
		if !ok {
			return nil, noSuchResource(info)
		}
		return statusHandler(served, storage, info)
	default:
		return nil, noSuchResource(info)
	}
	if handler == nil {
		return nil, apierrors.NewMethodNotSupported(resource.GroupResource(), info.Verb)
	}
	return handler, nil
}

// scopeFits mirrors what apiextensions does: lists and watches may span namespaces, nothing else may.
func scopeFits(served *registry.Served, info *request.RequestInfo) bool {
	if !served.Kind.Namespaced() {
		return info.Namespace == ""
	}
	return info.Namespace != "" || info.Verb == "list" || info.Verb == "watch"
}

func noSuchResource(info *request.RequestInfo) error {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	return apierrors.NewGenericServerResponse(http.StatusNotFound, info.Verb, resource, info.Name, "", 0, true)
}

// mainHandler is nil if the storage doesn't know the verb. No admission is passed: what admission would
// do is done by the storage, within the write itself.
func (s *exports) mainHandler(served *registry.Served, info *request.RequestInfo) http.HandlerFunc {
	storage, scope := served.Storage[served.Kind.GVR().Resource], served.Kind.Scope()
	switch info.Verb {
	case "get":
		if getter, ok := storage.(rest.Getter); ok {
			return handlers.GetResource(getter, scope)
		}
	case "list":
		if lister, ok := storage.(rest.Lister); ok {
			watcher, _ := storage.(rest.Watcher)
			return handlers.ListResource(lister, watcher, scope, false, s.minWatch)
		}
	case "watch":
		lister, lists := storage.(rest.Lister)
		if watcher, ok := storage.(rest.Watcher); ok && lists {
			return handlers.ListResource(lister, watcher, scope, true, s.minWatch)
		}
	default:
		authorized := *scope
		authorized.Authorizer = s.access
		return writeHandler(storage, &authorized, info)
	}
	return nil
}

func writeHandler(storage rest.Storage, scope *handlers.RequestScope, info *request.RequestInfo) http.HandlerFunc {
	switch info.Verb {
	case "create":
		if named, ok := storage.(rest.NamedCreater); ok && info.Name != "" {
			return handlers.CreateNamedResource(named, scope, nil)
		}
		if creater, ok := storage.(rest.Creater); ok && info.Name == "" {
			return handlers.CreateResource(creater, scope, nil)
		}
	case "update":
		if updater, ok := storage.(rest.Updater); ok {
			return handlers.UpdateResource(updater, scope, nil)
		}
	case "patch":
		if patcher, ok := storage.(rest.Patcher); ok {
			return handlers.PatchResource(patcher, scope, nil, patchTypes)
		}
	case "delete":
		if deleter, ok := storage.(rest.GracefulDeleter); ok {
			return handlers.DeleteResource(deleter, true, scope, nil)
		}
	case "deletecollection":
		if deleter, ok := storage.(rest.CollectionDeleter); ok {
			return handlers.DeleteCollection(deleter, true, scope, nil)
		}
	}
	return nil
}

// statusHandler reads only: status is what krop observed, and nobody else's to write.
func statusHandler(served *registry.Served, storage rest.Storage, info *request.RequestInfo) (http.HandlerFunc, error) {
	switch info.Verb {
	case "get":
		if getter, ok := storage.(rest.Getter); ok {
			return handlers.GetResource(getter, served.Kind.StatusScope()), nil
		}
	case "update", "patch":
		return nil, notAllowed("status is written by krop alone: it says what became of the spec, so change the spec instead")
	}
	return nil, apierrors.NewMethodNotSupported(served.Kind.GVR().GroupResource(), info.Verb)
}
