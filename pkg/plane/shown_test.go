package plane_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
	"go.opendefense.cloud/krop/pkg/plane/planetest"
)

// says is what a binding says, one answer after the other.
type says struct {
	answers []string
	asked   int
}

func (s *says) Shown(context.Context, v1alpha1.ExportKey, logicalcluster.Name, schema.GroupResource) (string, error) {
	s.asked++
	answer := s.answers[s.asked-1]
	if answer == "broken" {
		return "", errors.New("connection refused")
	}
	return answer, nil
}

func TestAListIsBelievedOnlyWhileKcpShowsAllOfIt(t *testing.T) {
	for name, test := range map[string]struct {
		answers     []string
		believed    bool
		unreachable bool
	}{
		"shown all the time":     {answers: []string{"1", "1"}, believed: true},
		"shown in the meantime":  {answers: []string{"", "2"}},
		"hidden in the meantime": {answers: []string{"1", ""}},
		"hidden and shown again": {answers: []string{"1", "3"}},
		"never shown":            {answers: []string{"", ""}},
		"not known before":       {answers: []string{"broken"}, unreachable: true},
		"not known after":        {answers: []string{"1", "broken"}, unreachable: true},
	} {
		t.Run(name, func(t *testing.T) {
			set, proxy := claimedWorkspaces(t, &says{answers: test.answers})
			_, err := planeFor(t, set, v1alpha1.TargetConsumer).List(t.Context(), configMaps, "default", labels.Everything(), 1000)
			switch {
			case test.believed && err != nil:
				t.Errorf("the answer is %v, want a list", err)
			case test.unreachable && !errors.Is(err, plane.ErrNotReachable):
				t.Errorf("the answer is %v, want one that says that the plane can't be reached", err)
			case !test.believed && !test.unreachable && !apierrors.IsServiceUnavailable(err):
				t.Errorf("the answer is %v, want 503", err)
			}
			if len(test.answers) == 2 && len(proxy.Seen()) == 0 {
				t.Error("nothing was listed")
			}
		})
	}
}

func TestListsOfOtherPlanesNeedNoClaim(t *testing.T) {
	claims := &says{}
	set, _ := claimedWorkspaces(t, claims)
	for _, target := range []v1alpha1.Target{v1alpha1.TargetProvider, v1alpha1.TargetHost} {
		if _, err := planeFor(t, set, target).List(t.Context(), configMaps, "default", labels.Everything(), 1000); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
	if claims.asked > 0 {
		t.Errorf("claims were asked for %d times", claims.asked)
	}
}

func claimedWorkspaces(t *testing.T, claims plane.Claims) (*plane.Set, *planetest.Workspaces) {
	t.Helper()
	proxy := planetest.NewWorkspaces(t, server.Admin)
	set, err := plane.New(plane.Config{
		Kcp: proxy.User(server.Admin), Host: server.Admin, Claims: claims,
		Endpoints: endpoint{proxy.URL + "/services/apiexport/provider1/databases.example.org"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, proxy
}
