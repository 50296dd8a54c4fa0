package apiserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/apiserver"
)

func TestReviewGoesToTheWorkspaceOverTheExport(t *testing.T) {
	var asked authorizationv1.SubjectAccessReview
	var path string
	plane := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.Method + " " + r.URL.Path
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		asked.Status.Allowed = asked.Spec.User == "alice"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(asked)
	}))
	t.Cleanup(plane.Close)
	reviewer := apiserver.NewReviewer(func(_ context.Context, _ v1alpha1.ExportKey, cluster logicalcluster.Name) (*rest.Config, error) {
		config := &rest.Config{Host: plane.URL + "/clusters/" + cluster.String()}
		config.ContentType = "application/json"
		return config, nil
	})
	for user, want := range map[string]bool{"alice": true, "bob": false} {
		got, err := reviewer.Review(t.Context(), export, consumer, authorizationv1.SubjectAccessReviewSpec{User: user})
		if err != nil || got.Allowed != want {
			t.Errorf("%s: %+v, %v", user, got, err)
		}
	}
	if want := "POST /clusters/consumer1/apis/authorization.k8s.io/v1/subjectaccessreviews"; path != want {
		t.Errorf("asked at %q, want %q", path, want)
	}
}

func TestReviewPassesTheStatusOn(t *testing.T) {
	plane := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	}))
	t.Cleanup(plane.Close)
	reviewer := apiserver.NewReviewer(func(context.Context, v1alpha1.ExportKey, logicalcluster.Name) (*rest.Config, error) {
		return &rest.Config{Host: plane.URL}, nil
	})
	if _, err := reviewer.Review(t.Context(), export, consumer, authorizationv1.SubjectAccessReviewSpec{}); !apierrors.IsForbidden(err) {
		t.Errorf("%v, want the API server's Forbidden: it means that the claim isn't accepted", err)
	}
}
