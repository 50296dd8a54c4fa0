package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/registry"
)

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// PlaneNamespaces reads namespaces through the consumer's plane, for which every blueprint of a
// namespaced kind claims namespaces.
type PlaneNamespaces struct {
	Planes plane.Planes
}

var _ Namespaces = PlaneNamespaces{}

// absenceDelay is how long a namespace that is said not to exist is given before it is asked for once more: one
// that was just created may not be known everywhere yet.
const absenceDelay = 300 * time.Millisecond

// Check implements Namespaces. A consumer that has not accepted the claim keeps krop from knowing;
// then children that the namespace can't take are what is refused.
func (n PlaneNamespaces) Check(ctx context.Context, export v1alpha1.ExportKey, consumer logicalcluster.Name, name string) error {
	unseen := fmt.Sprintf("namespace %q can't be looked at in the consumer's workspace now", name)
	at, err := n.Planes.For(ctx, v1alpha1.TargetConsumer, export, consumer)
	if err != nil {
		return registry.Unavailable(unseen, err)
	}
	namespace, err := readNamespace(ctx, at, name)
	switch {
	case apierrors.IsForbidden(err):
		klog.FromContext(ctx).V(4).Info("namespaces can't be read: claim not accepted", "export", export.String(), "cluster", consumer)
		return nil
	case isAbsence(err, name):
		return apierrors.NewNotFound(namespaceResource.GroupResource(), name)
	case apierrors.IsNotFound(err):
		klog.FromContext(ctx).V(2).Info("namespaces aren't served yet", "export", export.String(), "cluster", consumer, "err", err)
		return registry.TryAgain(unseen)
	case err != nil:
		return registry.Unavailable(unseen, err)
	}
	return refuseTerminating(namespace)
}

// readNamespace asks once more where the first answer is that there is no such namespace.
func readNamespace(ctx context.Context, at plane.Plane, name string) (*unstructured.Unstructured, error) {
	namespace, err := at.Get(ctx, plane.Object{GVR: namespaceResource, Name: name})
	if !isAbsence(err, name) {
		return namespace, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(absenceDelay):
		return at.Get(ctx, plane.Object{GVR: namespaceResource, Name: name})
	}
}

// isAbsence says whether the answer is about this very namespace. Any other NotFound may only mean that the
// virtual workspace doesn't serve the consumer yet: after a fresh binding, or where the export was made anew.
func isAbsence(err error, name string) bool {
	var answer apierrors.APIStatus
	if !plane.IsGone(err) || !errors.As(err, &answer) {
		return false
	}
	about := answer.Status().Details
	return about != nil && about.Name == name && about.Kind == namespaceResource.Resource && about.Group == namespaceResource.Group
}

// Forget implements Namespaces. It remembers nothing.
func (n PlaneNamespaces) Forget(v1alpha1.ExportKey, logicalcluster.Name, string) {}

func refuseTerminating(namespace *unstructured.Unstructured) error {
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	name := namespace.GetName()
	refusal := apierrors.NewForbidden(namespaceResource.GroupResource(), name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, terminatingCause(name))
	return refusal
}

// terminatingCause is what kube-apiserver answers with, and what namespace controllers look for.
func terminatingCause(name string) metav1.StatusCause {
	return metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", name),
		Field:   "metadata.namespace",
	}
}
