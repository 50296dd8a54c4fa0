package compose

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

// finding is one thing that is wrong: with a child, with a node as a whole (key is zero), or with the
// instance's status (node is nil).
type finding struct {
	node *engine.NodePlan
	key  v1alpha1.ObjectKey
	err  error
}

// foreignError says that an object exists and isn't the instance's.
type foreignError struct {
	object *unstructured.Unstructured
	policy v1alpha1.ConflictPolicy
}

// Error says what can be done about it.
func (e *foreignError) Error() string {
	switch {
	case engine.Marked(e.object):
		return "it exists and belongs to another instance, or did to an earlier one of this name"
	case e.policy == v1alpha1.ConflictAdopt:
		return "it exists and isn't this instance's"
	default:
		return "it exists and isn't this instance's (the blueprint doesn't say conflictPolicy: Adopt)"
	}
}

// childError is what has gone wrong with a child, in words that may be shown to the instance's user. The
// cause may say more, such as where krop's servers are.
type childError struct {
	child, reason string
	cause         error
}

func newChildError(request Request, f finding) *childError {
	return &childError{child: describe(f.node, f.key), reason: judge(request, f).reason, cause: f.err}
}

// Error names child and reason.
func (e *childError) Error() string { return e.child + ": " + e.reason }

// Unwrap is the cause.
func (e *childError) Unwrap() error { return e.cause }

// log keeps the cause for those who run krop.
func (e *childError) log(ctx context.Context, instance *unstructured.Unstructured) {
	klog.FromContext(ctx).V(2).Info("child failed", "instance", klog.KObj(instance), "uid", instance.GetUID(), "child", e.child, "err", e.cause)
}

// verdict is what a finding means for the request.
type verdict struct {
	code   int32
	status metav1.StatusReason
	// reason is the finding in words, without saying which child it is about.
	reason string
	// causes of a child's API, by field of the child.
	causes []metav1.StatusCause
}

// judge tells what kind of finding it is. The child's own API is quoted as it is.
func judge(request Request, f finding) verdict {
	var expression *engine.ExpressionError
	var foreign *foreignError
	var over *budget.Over
	denial, denied := plane.DeniedBy(f.err)
	answer := apierrors.APIStatus(nil)
	switch {
	case budget.IsBusy(f.err):
		return busy(f.err)
	case errors.As(f.err, &expression):
		return verdict{code: http.StatusUnprocessableEntity, status: metav1.StatusReasonInvalid, reason: engine.Truncated(expression.Error())}
	case errors.As(f.err, &over):
		return verdict{code: http.StatusUnprocessableEntity, status: metav1.StatusReasonInvalid, reason: f.err.Error()}
	case errors.As(f.err, &foreign):
		return verdict{code: http.StatusConflict, status: metav1.StatusReasonConflict, reason: foreign.Error()}
	case denied:
		return verdict{code: http.StatusForbidden, status: metav1.StatusReasonForbidden, reason: permission(request, f, denial)}
	case errors.Is(f.err, plane.ErrNoHost):
		return unavailable(fmt.Sprintf("krop has no %s plane: %v", f.key.Target, plane.ErrNoHost))
	case plane.IsNotServed(f.err):
		return unavailable(notServed(f.key))
	case errors.As(f.err, &answer) && plane.IsTransient(f.err):
		return unavailable(answer.Status().Message)
	case errors.As(f.err, &answer):
		return quoted(answer.Status())
	default:
		// What failed on the way says where krop's servers are, which is for logs only.
		return unavailable(fmt.Sprintf("the %s plane can't be reached now", f.key.Target))
	}
}

// busy is the verdict on what had to wait too long for its turn: of the server itself, which says so.
func busy(err error) verdict {
	var over *budget.Over
	errors.As(err, &over)
	return verdict{code: http.StatusTooManyRequests, status: metav1.StatusReasonTooManyRequests, reason: over.Error()}
}

// notServed says what a plane lacks. A kind that is no API server's own reaches a consumer by a binding.
func notServed(key v1alpha1.ObjectKey) string {
	lacks := fmt.Sprintf("the %s plane does not serve %s now", key.Target, key.GroupResource)
	if key.Target != v1alpha1.TargetConsumer || key.GroupResource.Group == "" {
		return lacks
	}
	return lacks + ": if it stays so, bind the APIExport that offers it in the workspace"
}

func unavailable(reason string) verdict {
	return verdict{code: http.StatusServiceUnavailable, status: metav1.StatusReasonServiceUnavailable, reason: reason}
}

// quoted passes on what a child's API said.
func quoted(said metav1.Status) verdict {
	v := verdict{code: said.Code, status: said.Reason, reason: engine.Truncated(said.Message)}
	if said.Details != nil {
		v.causes = said.Details.Causes
	}
	if v.code == 0 {
		v.code, v.status = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	return v
}

// permission says who has to allow what.
func permission(request Request, f finding, denial plane.Denial) string {
	what := fmt.Sprintf("krop may not %s %s on the %s plane", denial.Verb, denial.Resource, f.key.Target)
	switch f.key.Target {
	case v1alpha1.TargetConsumer:
		return what + ": " + acceptance(request.Program, denial.Resource)
	case v1alpha1.TargetHost:
		return what + ": grant it to krop's user on the host, as manifests/host does for Secrets"
	default:
		return what + ": grant it to krop's user in the provider's workspace"
	}
}

// acceptance names the permission claim of a resource as a consumer is to accept it. Which identity it has by now is
// in the consumer's binding; resources of the core group have none.
func acceptance(program *engine.Program, resource schema.GroupResource) string {
	accept := fmt.Sprintf("accept the permission claim {group: %q, resource: %s, verbs: [%s]} of the APIExport %s in spec.permissionClaims of the APIBinding",
		resource.Group, resource.Resource, claimedVerbs(program, resource), program.Export.Name)
	if resource.Group == "" {
		return accept
	}
	return accept + ", with the identityHash that status.exportPermissionClaims there has, if any"
}

// claimedVerbs are the verbs that a blueprint claims for a resource, by what all its nodes do with it.
func claimedVerbs(program *engine.Program, resource schema.GroupResource) string {
	read := false
	for i := range program.Nodes {
		node := &program.Nodes[i]
		if node.Target != v1alpha1.TargetConsumer || node.GVR.GroupResource() != resource {
			continue
		}
		if !node.External {
			return `"*"`
		}
		read = true
	}
	if read {
		return "get, list, watch"
	}
	return `"*"`
}

// isUnverifiable says whether a dry-run failed for a reason that says nothing about the real write: a
// webhook that refuses dry-runs, or a namespace or kind that the same plan is about to create.
func isUnverifiable(plan *engine.Plan, node *engine.NodePlan, err error) bool {
	answer := apierrors.APIStatus(nil)
	if !errors.As(err, &answer) {
		return false
	}
	switch said := answer.Status(); {
	case said.Reason == metav1.StatusReasonBadRequest && strings.Contains(said.Message, "does not support dry run"):
		return true
	case plane.IsNotServed(err):
		return creates(plan, node.Target, kinds...)
	case said.Reason == metav1.StatusReasonNotFound && said.Details != nil && said.Details.Kind == namespaces.Resource:
		return creates(plan, node.Target, namespaces)
	default:
		return false
	}
}

var (
	namespaces = schema.GroupResource{Resource: "namespaces"}
	// kinds are the resources that make a plane serve another kind.
	kinds = []schema.GroupResource{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Group: "apis.kcp.io", Resource: "apibindings"},
	}
)

// creates says whether the plan creates, or may yet turn out to create, an object of one of the resources.
// Which one is not compared: names of nodes that pend aren't known.
func creates(plan *engine.Plan, target v1alpha1.Target, resources ...schema.GroupResource) bool {
	for i := range plan.Nodes {
		node := &plan.Nodes[i]
		if node.External || node.Target != target || node.Outcome == engine.Ignored {
			continue
		}
		for _, resource := range resources {
			if node.GVR.GroupResource() == resource {
				return true
			}
		}
	}
	return false
}

// expressionErrors are the failed expressions in an error that may join several.
func expressionErrors(err error) []*engine.ExpressionError {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*engine.ExpressionError
		for _, part := range joined.Unwrap() {
			all = append(all, expressionErrors(part)...)
		}
		return all
	}
	var failure *engine.ExpressionError
	if !errors.As(err, &failure) {
		return nil
	}
	return []*engine.ExpressionError{failure}
}

// describe names a child for people: resource "config" (consumer ConfigMap default/web).
func describe(node *engine.NodePlan, key v1alpha1.ObjectKey) string {
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + name
	}
	if name == "" { // not known yet
		return fmt.Sprintf("resource %q (%s %s)", node.ID, node.Target, node.GVK.Kind)
	}
	return fmt.Sprintf("resource %q (%s %s %s)", node.ID, node.Target, node.GVK.Kind, name)
}

// nodeOf is what a row tells of its node.
func nodeOf(row v1alpha1.ComposedResource) *engine.NodePlan {
	gvr := row.GVR()
	return &engine.NodePlan{Node: &engine.Node{
		ID: v1alpha1.NodeID(row.ID), Target: row.Target, GVR: gvr, GVK: gvr.GroupVersion().WithKind(row.Kind),
	}}
}
