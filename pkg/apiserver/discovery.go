package apiserver

import (
	"fmt"
	"net/http"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kube-openapi/pkg/handler3"

	"go.opendefense.cloud/krop/pkg/registry"
	"go.opendefense.cloud/krop/pkg/registry/kind"
)

const openAPIPath = "/openapi/v3"

// documents are what is said about one kind. They are built once and served many times: kcp asks for the
// version's on every discovery of every client.
type documents struct {
	kind                   *kind.Kind
	groups, group, version http.Handler
	openAPI                *handler3.OpenAPIService
}

func newDocuments(served *registry.Served, addresses discovery.Addresses) (*documents, error) {
	about := &documents{kind: served.Kind}
	gv := served.Kind.GVK().GroupVersion()
	group := metav1.APIGroup{
		Name:             gv.Group,
		Versions:         []metav1.GroupVersionForDiscovery{{GroupVersion: gv.String(), Version: gv.Version}},
		PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version},
	}
	resources := apiResources(served)

	root := discovery.NewRootAPIsHandler(addresses, codecs)
	root.AddGroup(group)
	all, err := aggregatedGroups(gv.Group, gv.Version, resources)
	if err != nil {
		return nil, err
	}
	about.groups = aggregated.WrapAggregatedDiscoveryToHandler(root, all, nil)
	about.group = discovery.NewAPIGroupHandler(codecs, group)
	about.version = discovery.NewAPIVersionHandler(codecs, gv,
		discovery.APIResourceListerFunc(func() []metav1.APIResource { return resources }))

	about.openAPI = handler3.NewOpenAPIService()
	about.openAPI.UpdateGroupVersion("apis/"+gv.String(), served.Kind.OpenAPIV3())
	return about, nil
}

func aggregatedGroups(group, version string, resources []metav1.APIResource) (http.Handler, error) {
	converted, err := endpoints.ConvertGroupVersionIntoToDiscovery(resources)
	if err != nil {
		return nil, fmt.Errorf("aggregated discovery: %w", err)
	}
	all := aggregated.NewResourceManager("apis")
	all.AddGroupVersion(group, apidiscoveryv2.APIVersionDiscovery{
		Version: version, Resources: converted, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
	})
	return all, nil
}

// apiResources lists the kind and its status with the verbs that they really have.
func apiResources(served *registry.Served) []metav1.APIResource {
	gvr, gvk, names := served.Kind.GVR(), served.Kind.GVK(), served.Kind.Names()
	main := metav1.APIResource{
		Name:         gvr.Resource,
		SingularName: names.Singular,
		Namespaced:   served.Kind.Namespaced(),
		Group:        gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
		ShortNames: names.ShortNames,
		Categories: names.Categories,
		Verbs:      verbs(served.Storage[gvr.Resource]),
	}
	resources := []metav1.APIResource{main}
	if _, ok := served.Storage[gvr.Resource+"/"+statusSubresource]; ok {
		resources = append(resources, metav1.APIResource{
			Name:       gvr.Resource + "/" + statusSubresource,
			Namespaced: served.Kind.Namespaced(),
			Group:      gvk.Group, Version: gvk.Version, Kind: gvk.Kind,
			Verbs: metav1.Verbs{"get"},
		})
	}
	return resources
}

// verbs asks the storage what it can do, as the handlers do.
func verbs(storage rest.Storage) metav1.Verbs {
	var can metav1.Verbs
	add := func(verb string, ok bool) {
		if ok {
			can = append(can, verb)
		}
	}
	_, deletes := storage.(rest.GracefulDeleter)
	_, deletesMany := storage.(rest.CollectionDeleter)
	_, gets := storage.(rest.Getter)
	_, lists := storage.(rest.Lister)
	_, patches := storage.(rest.Patcher)
	_, creates := storage.(rest.Creater)
	_, updates := storage.(rest.Updater)
	_, watches := storage.(rest.Watcher)
	add("delete", deletes)
	add("deletecollection", deletesMany)
	add("get", gets)
	add("list", lists)
	add("patch", patches)
	add("create", creates)
	add("update", updates)
	add("watch", watches && lists)
	return can
}

// serveOpenAPI serves the document itself. A hash in the query is dropped: for one that is out of date
// the library would redirect to a path that lacks the export. Caches are served by the ETag.
func (d *documents) serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	plain := *r.URL
	plain.RawQuery = ""
	r = r.WithContext(r.Context())
	r.URL = &plain
	d.openAPI.HandleGroupVersion(w, r)
}
