package plane

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
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

	"go.opendefense.cloud/krop/pkg/budget"
)

const (
	// turnPatience is how long a call waits for its turn at most. Its plane is slow then, or very busy: whoever
	// has called holds a place of the server, which somebody with another plane could use.
	turnPatience = 5 * time.Second
	// callTimeout bounds one call, retries that its server asks for included. kcp gives a request
	// 60 seconds as a whole, and composing one takes several calls, one after the other.
	callTimeout = 15 * time.Second
)

// server is a Plane over one API server, or one workspace of it.
type server struct {
	client    dynamic.Interface
	discovery rest.Interface
	limits    budget.Limits
	turns     *budget.Turns // of all consumers that use the plane
	consumer  logicalcluster.Name
}

var _ Plane = &server{}

// newServer makes a plane of which one consumer may have so many calls in flight.
func newServer(a address, limits budget.Limits, perConsumer int) (*server, error) {
	client, err := dynamic.NewForConfigAndClient(a.at(), a.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", a.base, err)
	}
	discovery, err := discovery.NewDiscoveryClientForConfigAndClient(a.at(), a.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", a.base, err)
	}
	return &server{
		client: client, discovery: discovery.RESTClient(),
		limits: limits, turns: budget.NewTurns(limits.Of(budget.CallsPerPlane), perConsumer, math.MaxInt),
	}, nil
}

// servedTo is the plane for one consumer. All of them share its turns.
func (s *server) servedTo(consumer logicalcluster.Name) *server {
	own := *s
	own.consumer = consumer
	return &own
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
	leave, err := s.turn(ctx)
	if err != nil {
		return reach(err)
	}
	defer leave()
	return reach(do(ctx))
}

func (s *server) turn(ctx context.Context) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	leave, err = s.turns.Enter(waiting, s.consumer.String())
	if err != nil && ctx.Err() == nil {
		return nil, s.limits.Exceeded(budget.CallsPerPlane, fmt.Sprintf("this one has waited for %s", turnPatience))
	}
	return leave, err
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
