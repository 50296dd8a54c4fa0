package plane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxInFlight bounds the calls that one plane gets from krop at once. It is above the fan-out of a
	// single request (compose), so that two instances of a workspace don't wait for each other, and
	// below the 100 streams that an API server allows on one HTTP/2 connection.
	maxInFlight = 64
	// callTimeout bounds one call, retries that its server asks for included. kcp gives a request
	// 60 seconds as a whole, and composing one takes several calls, one after the other.
	callTimeout = 15 * time.Second
)

// server is a Plane over one API server, or one workspace of it.
type server struct {
	client    dynamic.Interface
	discovery rest.Interface
	slots     chan struct{}
}

var _ Plane = &server{}

func newServer(a address) (*server, error) {
	client, err := dynamic.NewForConfigAndClient(a.at(), a.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", a.base, err)
	}
	discovery, err := discovery.NewDiscoveryClientForConfigAndClient(a.at(), a.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", a.base, err)
	}
	return &server{client: client, discovery: discovery.RESTClient(), slots: make(chan struct{}, maxInFlight)}, nil
}

// Get implements Plane.
func (s *server) Get(ctx context.Context, object Object) (*unstructured.Unstructured, error) {
	if err := checkName(object); err != nil {
		return nil, err
	}
	return s.call(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.resource(object).Get(ctx, object.Name, metav1.GetOptions{})
	})
}

// Create implements Plane.
func (s *server) Create(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured, options WriteOptions) (*unstructured.Unstructured, error) {
	at := locate(gvr, object)
	if err := checkName(at); err != nil {
		return nil, err
	}
	return s.call(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.resource(at).Create(ctx, object, metav1.CreateOptions{
			FieldManager: options.FieldManager,
			DryRun:       dryRun(options),
		})
	})
}

// Update implements Plane.
func (s *server) Update(ctx context.Context, gvr schema.GroupVersionResource, object *unstructured.Unstructured, options WriteOptions) (*unstructured.Unstructured, error) {
	return s.call(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.resource(locate(gvr, object)).Update(ctx, object, metav1.UpdateOptions{
			FieldManager: options.FieldManager,
			DryRun:       dryRun(options),
		})
	})
}

// Delete implements Plane. It does not wait for what depends on the object.
func (s *server) Delete(ctx context.Context, object Object, uid types.UID) error {
	propagation := metav1.DeletePropagationBackground
	_, err := s.call(ctx, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return nil, s.resource(object).Delete(ctx, object.Name, metav1.DeleteOptions{
			Preconditions:     &metav1.Preconditions{UID: &uid},
			PropagationPolicy: &propagation,
		})
	})
	return err
}

// call makes one call within the plane's bounds, and tells errors of the way from those of the server.
func (s *server) call(ctx context.Context, do func(context.Context) (*unstructured.Unstructured, error)) (object *unstructured.Unstructured, err error) {
	err = s.within(ctx, func(ctx context.Context) (err error) {
		object, err = do(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return object, nil
}

func (s *server) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return reach(ctx.Err())
	}
	return reach(do(ctx))
}

func (s *server) resource(object Object) dynamic.ResourceInterface {
	if object.Namespace == "" {
		return s.client.Resource(object.GVR)
	}
	return s.client.Resource(object.GVR).Namespace(object.Namespace)
}

// locate says where an object is to be.
func locate(gvr schema.GroupVersionResource, object *unstructured.Unstructured) Object {
	return Object{GVR: gvr, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// checkName refuses names that no path can hold, in the words that an API server would use: such a
// request can't be sent, so no server would ever say it.
func checkName(object Object) error {
	var problems field.ErrorList
	metadata := field.NewPath("metadata")
	for _, problem := range content.IsPathSegmentName(object.Name) {
		problems = append(problems, field.Invalid(metadata.Child("name"), object.Name, problem))
	}
	if object.Name == "" {
		problems = append(problems, field.Required(metadata.Child("name"), "name is required"))
	}
	problems = append(problems, namespaceProblems(object.Namespace)...)
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: object.GVR.Group, Kind: object.GVR.Resource}, object.Name, problems)
}

func namespaceProblems(namespace string) field.ErrorList {
	var problems field.ErrorList
	for _, problem := range content.IsPathSegmentName(namespace) {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "namespace"), namespace, problem))
	}
	return problems
}

func dryRun(options WriteOptions) []string {
	if options.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
