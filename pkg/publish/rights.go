package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/manifests"
	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
)

// composeVerbs is what composing an object of krop's own takes. In claims "*" stands beside them.
var composeVerbs = writeVerbs[1:]

const (
	// maxReviews is how many access reviews run at once: they are small, and a blueprint with many kinds has dozens.
	maxReviews = 16
	// Rights that were granted a moment ago, by the same kubectl apply, take kcp another moment to notice.
	rightsPatience = time.Second
	rightsPoll     = 200 * time.Millisecond
)

// reviews asks kcp what krop's user may do.
type reviews = authorizationclient.SelfSubjectAccessReviewInterface

// UncomposableError says that krop's user may not do in the blueprint's workspace what the blueprint asks of
// it. It is a Status with code 403: without it, consumers would be refused for what the provider has to repair.
type UncomposableError struct {
	// Cluster is the workspace.
	Cluster logicalcluster.Name
	// Missing are the verbs that krop's user lacks, by resource; sorted.
	Missing []MissingRight
}

// MissingRight is a resource, and verbs on it.
type MissingRight struct {
	schema.GroupResource
	Verbs []string
}

// Error names each resource with the verbs, and what to apply.
func (e *UncomposableError) Error() string {
	rights := make([]string, 0, len(e.Missing))
	for _, missing := range e.Missing {
		rights = append(rights, strings.Join(missing.Verbs, ", ")+" "+missing.String())
	}
	return fmt.Sprintf("krop's user may not %s in the workspace %s, as the blueprint's resources with target provider need; "+
		"apply a ClusterRole and a ClusterRoleBinding there that grant it, as %s does for Secrets",
		strings.Join(rights, "; nor "), e.Cluster, manifests.ProviderFolder+"/"+childKindsFile)
}

// Status is what a client sees.
func (e *UncomposableError) Status() metav1.Status {
	details := &metav1.StatusDetails{Group: v1alpha1.GroupVersion.Group, Kind: "resourcegraphdefinitions"}
	for _, missing := range e.Missing {
		details.Causes = append(details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeForbidden, Message: "missing verbs: " + strings.Join(missing.Verbs, ", "), Field: missing.String(),
		})
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: e.Error(), Details: details,
	}
}

// childKindsFile is the manifest that shows providers how to grant kinds.
var childKindsFile = manifests.ChildKinds[strings.LastIndex(manifests.ChildKinds, "/")+1:]

// checkRights fails with UncomposableError unless krop's user may do all that the program asks of it in the
// blueprint's workspace.
func (p *Publisher) checkRights(ctx context.Context, program *engine.Program) error {
	needed := providerVerbs(program)
	if len(needed) == 0 {
		return nil
	}
	reviews, err := p.kcp.reviews(program.Export.Cluster.Path())
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		err := askRights(ctx, reviews, program.Export.Cluster, needed)
		var refusal *UncomposableError
		if !errors.As(err, &refusal) || time.Since(began) > rightsPatience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rightsPoll):
		}
	}
}

func askRights(ctx context.Context, reviews reviews, cluster logicalcluster.Name, needed []MissingRight) error {
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(maxReviews)
	denied := make([][]bool, len(needed))
	for i, right := range needed {
		denied[i] = make([]bool, len(right.Verbs))
		for j, verb := range right.Verbs {
			running.Go(func() error {
				allowed, err := mayI(ctx, reviews, right.GroupResource, verb)
				denied[i][j] = !allowed
				return err
			})
		}
	}
	if err := running.Wait(); err != nil {
		return err
	}
	return uncomposable(cluster, needed, denied)
}

func uncomposable(cluster logicalcluster.Name, needed []MissingRight, denied [][]bool) error {
	refusal := &UncomposableError{Cluster: cluster}
	for i, right := range needed {
		missing := MissingRight{GroupResource: right.GroupResource}
		for j, verb := range right.Verbs {
			if denied[i][j] {
				missing.Verbs = append(missing.Verbs, verb)
			}
		}
		if missing.Verbs != nil {
			refusal.Missing = append(refusal.Missing, missing)
		}
	}
	if refusal.Missing == nil {
		return nil
	}
	return refusal
}

// providerVerbs is what the program needs in the blueprint's workspace, by resource; sorted.
func providerVerbs(program *engine.Program) []MissingRight {
	wanted := map[schema.GroupResource][]string{}
	for _, node := range program.Nodes {
		if node.Target != v1alpha1.TargetProvider {
			continue
		}
		verbs := composeVerbs
		if node.External {
			verbs = readVerbs
		}
		resource := node.GVR.GroupResource()
		wanted[resource] = union(wanted[resource], verbs)
	}
	rights := make([]MissingRight, 0, len(wanted))
	for resource, verbs := range wanted {
		rights = append(rights, MissingRight{GroupResource: resource, Verbs: verbs})
	}
	slices.SortFunc(rights, func(a, b MissingRight) int { return strings.Compare(a.String(), b.String()) })
	return rights
}

// mayI asks kcp about krop's own user. The name and namespace are left open: children have any.
func mayI(ctx context.Context, reviews reviews, resource schema.GroupResource, verb string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: resource.Group, Resource: resource.Resource, Verb: verb},
	}}
	answer, err := reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking kcp whether krop's user may %s %s: %w", verb, resource, err)
	}
	return answer.Status.Allowed, nil
}

// reviews asks about krop's own rights in a workspace.
func (k *kcp) reviews(path logicalcluster.Path) (reviews, error) {
	config := rest.CopyConfig(k.config)
	config.Host = k.config.Host + path.RequestPath()
	client, err := authorizationclient.NewForConfigAndClient(config, k.client)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", path, err)
	}
	return client.SelfSubjectAccessReviews(), nil
}
