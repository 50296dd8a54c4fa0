package apiserver

import (
	"context"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// PlaneConfig says how a consumer's logical cluster is reached over an export: the host is the export's
// virtual workspace with /clusters/<id>, the identity krop's own.
type PlaneConfig func(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name) (*rest.Config, error)

type workspaceReviewer struct{ config PlaneConfig }

// NewReviewer reviews access in consumers' workspaces over the exports' virtual workspaces. Answers
// aren't kept: a right that is taken away is gone with the next request.
func NewReviewer(config PlaneConfig) Reviewer { return workspaceReviewer{config: config} }

// Review implements Reviewer.
func (r workspaceReviewer) Review(ctx context.Context, export v1alpha1.ExportKey, cluster logicalcluster.Name, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
	none := authorizationv1.SubjectAccessReviewStatus{}
	config, err := r.config(ctx, export, cluster)
	if err != nil {
		return none, err
	}
	client, err := authorizationclient.NewForConfig(config) // shares connections with all clients of this identity
	if err != nil {
		return none, fmt.Errorf("client for access reviews: %w", err)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	answer, err := client.SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return none, err
	}
	return answer.Status, nil
}
