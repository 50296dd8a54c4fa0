package plane_test

import (
	"errors"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/plane/planetest"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// TestDeniedRightsAreThoseThatNobodyGrants asks on the host, and in a workspace, as a user who may only read leases.
func TestDeniedRightsAreThoseThatNobodyGrants(t *testing.T) {
	grantKrop(t, leases, plane.ReadVerbs)
	proxy := planetest.NewWorkspaces(t, server.Krop)
	set, err := plane.New(plane.Config{Kcp: proxy.User(server.Krop), Host: server.Krop, Endpoints: endpoint{}})
	if err != nil {
		t.Fatal(err)
	}
	secret := schema.GroupResource{Resource: "secrets"}
	for _, target := range []v1alpha1.Target{v1alpha1.TargetHost, v1alpha1.TargetProvider} {
		denied, err := set.Denied(t.Context(), target, export, []plane.Right{{GroupResource: leases, Verbs: plane.ReadVerbs}})
		if err != nil || len(denied) > 0 {
			t.Errorf("%s: reading what may be read: %v, %v", target, denied, err)
		}
		denied, err = set.Denied(t.Context(), target, export, []plane.Right{
			{GroupResource: leases, Verbs: plane.ComposeVerbs}, {GroupResource: secret, Verbs: plane.ReadVerbs},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(denied) != 2 || denied[0].GroupResource != leases || denied[1].GroupResource != secret {
			t.Fatalf("%s: %+v", target, denied)
		}
		if want := []string{"create", "update", "patch", "delete"}; !slices.Equal(denied[0].Verbs, want) || !slices.Equal(denied[1].Verbs, plane.ReadVerbs) {
			t.Errorf("%s: %+v", target, denied)
		}
	}
	for _, seen := range proxy.Seen() {
		if want := "POST /clusters/provider1/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"; seen != want {
			t.Errorf("asked %s, want %s", seen, want)
		}
	}
}

func TestRightsOnAPlaneThatIsNotThereAreUnknown(t *testing.T) {
	nowhere := &rest.Config{Host: "https://127.0.0.1:1"}
	rights := []plane.Right{{GroupResource: leases, Verbs: plane.ReadVerbs}}
	hostless, err := plane.New(plane.Config{Kcp: nowhere, Endpoints: endpoint{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hostless.Denied(t.Context(), v1alpha1.TargetHost, export, rights); !errors.Is(err, plane.ErrNoHost) {
		t.Errorf("no host: %v, want ErrNoHost", err)
	}
	if _, err := hostless.Denied(t.Context(), v1alpha1.TargetProvider, export, rights); !errors.Is(err, plane.ErrNotReachable) {
		t.Errorf("no kcp: %v, want ErrNotReachable", err)
	}
}

// grantKrop lets the user krop do something for the length of the test.
func grantKrop(t *testing.T, resource schema.GroupResource, verbs []string) {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Admin)
	if err != nil {
		t.Fatal(err)
	}
	name := metav1.ObjectMeta{Name: "krop-" + resource.Resource}
	_, err = client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs,
	}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "krop"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
