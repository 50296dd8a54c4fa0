package plane

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// ResourceType is what a plane says of a kind.
type ResourceType struct {
	// Schema has its references resolved and its x-kubernetes-* extensions. It is shared: don't change it. It is nil for
	// definitions where the plane publishes no schema of them.
	Schema     *spec.Schema
	GVR        schema.GroupVersionResource
	Namespaced bool
	// Hash identifies all of the above: it is the same for the same content, also of different planes.
	Hash string
}

// UnknownKindError says that a plane doesn't serve a kind.
type UnknownKindError struct {
	GVK    schema.GroupVersionKind
	Target v1alpha1.Target
}

// Error names kind and plane.
func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("the %s's API server serves no %s", e.Target, e.GVK)
}

// Schemas resolves kinds on one plane, as they are when it is made: make a new one for each
// compilation. Not safe for concurrent use.
type Schemas struct {
	target    v1alpha1.Target
	discovery discovery.DiscoveryInterface
	documents *documents

	index     map[string]string // group version path -> address of its document
	resources map[schema.GroupVersion][]metav1.APIResource
	parsed    map[string]*document
}

// Schemas reads which API groups the target's plane serves. The kinds of a consumer's plane are
// taken from the provider's workspace: which consumers there will be isn't known when a blueprint is
// compiled, and claims name kinds that the provider has bound itself.
func (s *Set) Schemas(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey) (*Schemas, error) {
	at := target
	if target == v1alpha1.TargetConsumer {
		at = v1alpha1.TargetProvider
	}
	address, err := s.address(ctx, at, export, "")
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(address.at(), address.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", address.base, err)
	}
	schemas := &Schemas{
		target: target, discovery: client, documents: s.documents,
		resources: map[schema.GroupVersion][]metav1.APIResource{},
		parsed:    map[string]*document{},
	}
	if schemas.index, err = readIndex(ctx, client.RESTClient()); err != nil {
		return nil, reach(err)
	}
	return schemas, nil
}

// Resolve says what the plane serves as gvk. It fails with *UnknownKindError if nothing.
func (s *Schemas) Resolve(ctx context.Context, gvk schema.GroupVersionKind) (*ResourceType, error) {
	resource, err := s.resource(ctx, gvk)
	if err != nil {
		return nil, err
	}
	resolved, err := s.described(ctx, gvk)
	if err != nil {
		return nil, err
	}
	return &ResourceType{
		Schema:     resolved.schema,
		GVR:        gvk.GroupVersion().WithResource(resource.Name),
		Namespaced: resource.Namespaced,
		Hash:       fmt.Sprintf("%s/%t/%s", resource.Name, resource.Namespaced, resolved.hash),
	}, nil
}

// Document identifies what the plane's OpenAPI says of the group version as a whole; empty if it says nothing, or
// its server doesn't say which version of it this is. It is part of what was read when s was made.
func (s *Schemas) Document(gv schema.GroupVersion) string {
	_, hash := hashIn(s.index[groupVersionPath(gv)])
	return hash
}

// resource finds the kind in the plane's discovery.
func (s *Schemas) resource(ctx context.Context, gvk schema.GroupVersionKind) (*metav1.APIResource, error) {
	served, ok := s.resources[gvk.GroupVersion()]
	if !ok {
		list, err := s.list(ctx, gvk.GroupVersion())
		if IsNotServed(err) {
			return nil, &UnknownKindError{GVK: gvk, Target: s.target}
		}
		if err != nil {
			return nil, reach(err)
		}
		served = list.APIResources
		s.resources[gvk.GroupVersion()] = served
	}
	for i := range served {
		if served[i].Kind == gvk.Kind && !isSubresource(served[i].Name) {
			return &served[i], nil
		}
	}
	return nil, &UnknownKindError{GVK: gvk, Target: s.target}
}

// list reads the resources of a group version, under the caller's deadline, which the discovery
// client's own method has no place for.
func (s *Schemas) list(ctx context.Context, gv schema.GroupVersion) (*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{}
	return list, s.discovery.RESTClient().Get().AbsPath("/" + groupVersionPath(gv)).Do(ctx).Into(list)
}

// definitions is a kind that kcp serves and says nothing of in its OpenAPI. Of any other kind, that means that it is
// about to come or to go.
var definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// unpublished stands for the schema of definitions, which nobody needs: templates of them are literal.
var unpublished = &hashedSchema{hash: "unpublished"}

// describePatience is how long a kind that is served may lack its description: a kube-apiserver renews that of CRDs
// every second, kcp sooner.
const describePatience = 5 * time.Second

// described finds the schema of a kind that discovery has. What was published a moment ago may not be in the
// plane's OpenAPI yet, although all that kubectl can wait for has come.
func (s *Schemas) described(ctx context.Context, gvk schema.GroupVersionKind) (*hashedSchema, error) {
	for began := time.Now(); ; {
		found, err := s.schema(ctx, gvk)
		var missing *UnknownKindError
		if !errors.As(err, &missing) || time.Since(began) > describePatience {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(settlePoll):
		}
		delete(s.parsed, s.index[groupVersionPath(gvk.GroupVersion())])
		if s.index, err = readIndex(ctx, s.discovery.RESTClient()); err != nil {
			return nil, reach(err)
		}
	}
}

// schema finds the kind in the plane's OpenAPI v3.
func (s *Schemas) schema(ctx context.Context, gvk schema.GroupVersionKind) (*hashedSchema, error) {
	location, ok := s.index[groupVersionPath(gvk.GroupVersion())]
	if !ok && gvk == definitions {
		return unpublished, nil
	}
	if !ok {
		return nil, &UnknownKindError{GVK: gvk, Target: s.target}
	}
	if known, ok := s.documents.get(location, gvk); ok {
		return known, nil
	}
	doc, err := s.document(ctx, location)
	if err != nil {
		return nil, err
	}
	resolved, err := doc.resolve(gvk)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	if resolved == nil {
		return nil, &UnknownKindError{GVK: gvk, Target: s.target}
	}
	found, err := hashed(resolved)
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	if err := s.documents.limits.Check(budget.KindFields, found.fields); err != nil {
		return nil, err
	}
	s.documents.add(location, gvk, found)
	return found, nil
}

// document reads and parses a group version's document, once.
func (s *Schemas) document(ctx context.Context, location string) (*document, error) {
	if doc, ok := s.parsed[location]; ok {
		return doc, nil
	}
	doc, err := s.documents.read(ctx, s.discovery.RESTClient(), location)
	if err != nil {
		return nil, err
	}
	s.parsed[location] = doc
	return doc, nil
}
