package compose

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/engine"
	"go.opendefense.cloud/krop/pkg/plane"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

func node(id string, target v1alpha1.Target, gvr schema.GroupVersionResource) *engine.NodePlan {
	return &engine.NodePlan{Node: &engine.Node{
		ID: v1alpha1.NodeID(id), Target: target, GVR: gvr, GVK: gvr.GroupVersion().WithKind("Kind"),
	}, Outcome: engine.Desired}
}

func about(n *engine.NodePlan, name string, err error) finding {
	return finding{node: n, err: err, key: v1alpha1.ObjectKey{
		Target: n.Target, GroupResource: n.GVR.GroupResource(), Namespace: "ns", Name: name,
	}}
}

func requestOf(name string) Request {
	instance := &unstructured.Unstructured{}
	instance.SetAPIVersion("example.org/v1alpha1")
	instance.SetKind("Database")
	instance.SetName(name)
	return Request{Instance: instance, Program: &engine.Program{Export: v1alpha1.ExportKey{Cluster: "p", Name: "databases.example.org"}}}
}

func TestCodeIsThatOfWhatKeepsTheRequestFromSucceedingLongest(t *testing.T) {
	n := node("n", v1alpha1.TargetConsumer, secrets)
	denied := apierrors.NewForbidden(secrets.GroupResource(), "s", errors.New(`User "krop" cannot create resource "secrets" in API group "": access denied`))
	inOrder := []struct {
		err  error
		code int32
	}{
		{fmt.Errorf("dial: %w", plane.ErrNotReachable), http.StatusServiceUnavailable},
		{apierrors.NewBadRequest("malformed"), http.StatusBadRequest},
		{denied, http.StatusForbidden},
		{&foreignError{object: &unstructured.Unstructured{}}, http.StatusConflict},
		{&engine.ExpressionError{Node: "n", Message: "failed"}, http.StatusUnprocessableEntity},
	}
	var findings []finding
	for _, c := range inOrder {
		findings = append(findings, about(n, "s", c.err))
		got := refuse(requestOf("db"), findings).Status()
		if got.Code != c.code {
			t.Errorf("with %v on top: %d, want %d", c.err, got.Code, c.code)
		}
		if len(got.Details.Causes) != len(findings) {
			t.Errorf("%d causes, want all %d", len(got.Details.Causes), len(findings))
		}
		if retry := got.Details.RetryAfterSeconds > 0; retry != (c.code == http.StatusServiceUnavailable) {
			t.Errorf("%d: retry after %d", got.Code, got.Details.RetryAfterSeconds)
		}
	}
}

// TestNobodyIsMadeToWaitTenTimes has a plane that hangs: kubectl tries again by itself whenever it is told when to.
func TestNobodyIsMadeToWaitTenTimes(t *testing.T) {
	n := node("n", v1alpha1.TargetHost, secrets)
	for _, cause := range []error{context.DeadlineExceeded, &url.Error{Op: "Get", Err: context.DeadlineExceeded}} {
		got := refuse(requestOf("db"), []finding{about(n, "s", fmt.Errorf("%w: %w", plane.ErrNotReachable, cause))}).Status()
		if got.Code != http.StatusServiceUnavailable || got.Details.RetryAfterSeconds != 0 {
			t.Errorf("with %v: %d, retry after %d", cause, got.Code, got.Details.RetryAfterSeconds)
		}
	}
}

func TestWhatMayBeOverOnTheNextTryIsUnavailable(t *testing.T) {
	n := node("n", v1alpha1.TargetProvider, secrets)
	for _, err := range []error{
		apierrors.NewServiceUnavailable("starting"), apierrors.NewTimeoutError("slow", 1), apierrors.NewTooManyRequestsError("busy"),
		apierrors.NewGenericServerResponse(http.StatusNotFound, "POST", secrets.GroupResource(), "", "404 page not found", 0, true),
	} {
		if got := judge(requestOf("db"), about(n, "s", err)).code; got != http.StatusServiceUnavailable {
			t.Errorf("%v: %d, want 503", err, got)
		}
	}
}

func TestChildrenOfAListThatFailAlikeAreToldOnce(t *testing.T) {
	n := node("n", v1alpha1.TargetConsumer, secrets)
	var findings []finding
	for i := range 100 {
		findings = append(findings, about(n, fmt.Sprint("s", i), fmt.Errorf("dial: %w", plane.ErrNotReachable)))
	}
	if got := refuse(requestOf("db"), findings).Status().Details.Causes; len(got) != 1 {
		t.Errorf("%d causes, want one", len(got))
	}
	for i := range findings {
		findings[i].err = apierrors.NewBadRequest(fmt.Sprint("wrong ", i))
	}
	if got := refuse(requestOf("db"), findings).Status().Details.Causes; len(got) != maxCauses {
		t.Errorf("%d causes, want no more than %d", len(got), maxCauses)
	}
}

func TestCausesOfAChildsAPIKeepTheirFields(t *testing.T) {
	n := node("n", v1alpha1.TargetProvider, secrets)
	said := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", nil)
	said.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldValueRequired, Field: "type", Message: "Required value"},
		{Type: metav1.CauseTypeFieldValueInvalid, Field: "data[a b]", Message: "Invalid value"},
	}
	got := refuse(requestOf("db"), []finding{about(n, "s", said)}).Status()
	if got.Code != http.StatusUnprocessableEntity || got.Details.Kind != "Database" || len(got.Details.Causes) != 2 {
		t.Fatalf("got %+v", got)
	}
	if cause := got.Details.Causes[0]; cause.Field != "resources[n].type" || cause.Type != metav1.CauseTypeFieldValueRequired {
		t.Errorf("cause %+v", cause)
	}
}

func TestWhatADryRunCannotTellIsUnverifiable(t *testing.T) {
	child := node("child", v1alpha1.TargetProvider, secrets)
	space := node("space", v1alpha1.TargetProvider, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	kind := node("kind", v1alpha1.TargetProvider, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	elsewhere := node("elsewhere", v1alpha1.TargetConsumer, space.GVR)
	noNamespace := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")
	noKind := apierrors.NewGenericServerResponse(http.StatusNotFound, "POST", secrets.GroupResource(), "", "404 page not found", 0, true)
	for name, c := range map[string]struct {
		err   error
		other *engine.NodePlan
		want  bool
	}{
		"webhook":                     {webhookerrors.NewDryRunUnsupportedErr("hook"), nil, true},
		"namespace of the plan":       {noNamespace, space, true},
		"namespace of nobody":         {noNamespace, nil, false},
		"namespace on another plane":  {noNamespace, elsewhere, false},
		"kind of the plan":            {noKind, kind, true},
		"kind of nobody":              {noKind, nil, false},
		"refused for what it says":    {apierrors.NewBadRequest("malformed"), space, false},
		"plane that can't be reached": {plane.ErrNotReachable, space, false},
	} {
		plan := &engine.Plan{Nodes: []engine.NodePlan{*child}}
		if c.other != nil {
			plan.Nodes = append(plan.Nodes, *c.other)
		}
		if got := isUnverifiable(plan, child, c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestClaimToAcceptIsTheOneThatTheBlueprintHas(t *testing.T) {
	databases := schema.GroupVersionResource{Group: "db.example.org", Version: "v1", Resource: "databases"}
	read := node("read", v1alpha1.TargetConsumer, secrets)
	read.External = true
	written := node("written", v1alpha1.TargetConsumer, secrets)
	writtenElsewhere := node("elsewhere", v1alpha1.TargetHost, secrets)
	const identity = "identityHash"
	for name, c := range map[string]struct {
		nodes    []*engine.NodePlan
		resource schema.GroupResource
		verbs    string
		identity bool
	}{
		"only read":                      {[]*engine.NodePlan{read}, secrets.GroupResource(), "[get, list, watch]", false},
		"written":                        {[]*engine.NodePlan{written}, secrets.GroupResource(), `["*"]`, false},
		"read and written":               {[]*engine.NodePlan{read, written}, secrets.GroupResource(), `["*"]`, false},
		"read, written on another plane": {[]*engine.NodePlan{read, writtenElsewhere}, secrets.GroupResource(), "[get, list, watch]", false},
		"of an API that has an identity": {[]*engine.NodePlan{node("n", v1alpha1.TargetConsumer, databases)}, databases.GroupResource(), `["*"]`, true},
	} {
		program := &engine.Program{}
		for _, n := range c.nodes {
			program.Nodes = append(program.Nodes, *n.Node)
		}
		told := acceptance(program, c.resource)
		if !strings.Contains(told, "verbs: "+c.verbs) || strings.Contains(told, identity) != c.identity {
			t.Errorf("%s: %s", name, told)
		}
	}
}

func TestKindThatAConsumerHasNotBoundIsToBeBound(t *testing.T) {
	const remedy = "bind the APIExport"
	for target, want := range map[v1alpha1.Target]bool{v1alpha1.TargetConsumer: true, v1alpha1.TargetHost: false} {
		key := v1alpha1.ObjectKey{Target: target, GroupResource: schema.GroupResource{Group: "db.example.org", Resource: "databases"}}
		if told := notServed(key); strings.Contains(told, remedy) != want {
			t.Errorf("%s: %s", target, told)
		}
	}
	if told := notServed(v1alpha1.ObjectKey{Target: v1alpha1.TargetConsumer, GroupResource: secrets.GroupResource()}); strings.Contains(told, remedy) {
		t.Errorf("of a built-in kind: %s", told)
	}
}

func TestExpressionThatFailsOnWhatAControllerWroteDoesNotKeepTheUserFromWriting(t *testing.T) {
	late := &engine.ExpressionError{Node: "n", Expression: "int(n.status.port)", Message: "not a number"}
	ofInput := &engine.ExpressionError{Node: "n", Expression: "int(schema.spec.port)", Fields: []string{"spec.port"}, Message: "not a number"}
	created, updated := &work{}, &work{rows: []v1alpha1.ComposedResource{{Name: "n", UID: "u"}}}
	for name, c := range map[string]struct {
		work    *work
		outcome engine.Outcome
		err     *engine.ExpressionError
		want    bool
	}{
		"template":                       {updated, engine.Failed, late, true},
		"status of a new instance":       {created, engine.Desired, late, true},
		"status of one that exists":      {updated, engine.Desired, late, false},
		"status that reads the instance": {updated, engine.Desired, ofInput, true},
	} {
		if got := c.work.blames(c.outcome, c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
