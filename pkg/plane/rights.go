package plane

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// What krop needs to be allowed on a plane: all of it for the kinds of children, and reading for those that it
// only refers to.
var (
	ComposeVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	ReadVerbs    = ComposeVerbs[:3:3]
)

const (
	// maxReviews is how many access reviews run at once: they are small, and a blueprint with many kinds has dozens.
	maxReviews = 16
	// Rights that were granted a moment ago, by the same kubectl apply, take an API server another moment to notice.
	rightsPatience = time.Second
	rightsPoll     = 200 * time.Millisecond
)

// Right is verbs on a resource, in all namespaces.
type Right struct {
	schema.GroupResource
	Verbs []string
}

// Denied are those of the rights that krop's user lacks on the provider's plane or on the host, as that plane's
// API server says, in the order that they are asked for.
func (s *Set) Denied(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey, rights []Right) ([]Right, error) {
	reviews, err := s.reviews(ctx, target, export)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		denied, err := askRights(ctx, reviews, rights)
		if err != nil || len(denied) == 0 || time.Since(began) > rightsPatience {
			return denied, reach(err)
		}
		select {
		case <-ctx.Done():
			return denied, nil
		case <-time.After(rightsPoll):
		}
	}
}

// reviews asks about krop's own rights on a plane.
type reviews = authorizationclient.SelfSubjectAccessReviewInterface

func (s *Set) reviews(ctx context.Context, target v1alpha1.Target, export v1alpha1.ExportKey) (reviews, error) {
	address, err := s.address(ctx, target, export, "")
	if err != nil {
		return nil, err
	}
	client, err := authorizationclient.NewForConfigAndClient(address.at(), address.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", address.base, err)
	}
	return client.SelfSubjectAccessReviews(), nil
}

func askRights(ctx context.Context, reviews reviews, rights []Right) ([]Right, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(maxReviews)
	answers := make([][]bool, len(rights))
	for i, right := range rights {
		answers[i] = make([]bool, len(right.Verbs))
		for j, verb := range right.Verbs {
			running.Go(func() (err error) {
				answers[i][j], err = mayI(ctx, reviews, right.GroupResource, verb)
				return err
			})
		}
	}
	if err := running.Wait(); err != nil {
		return nil, err
	}
	return deniedOf(rights, answers), nil
}

func deniedOf(rights []Right, allowed [][]bool) []Right {
	var denied []Right
	for i, right := range rights {
		lacks := Right{GroupResource: right.GroupResource}
		for j, verb := range right.Verbs {
			if !allowed[i][j] {
				lacks.Verbs = append(lacks.Verbs, verb)
			}
		}
		if lacks.Verbs != nil {
			denied = append(denied, lacks)
		}
	}
	return denied
}

// mayI asks an API server about krop's own user. The name and namespace are left open: children have any.
func mayI(ctx context.Context, reviews reviews, resource schema.GroupResource, verb string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: resource.Group, Resource: resource.Resource, Verb: verb},
	}}
	answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether krop's user may %s %s: %w", verb, resource, err)
	}
	return answer.Status.Allowed, nil
}
