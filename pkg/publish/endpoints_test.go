package publish

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"go.opendefense.cloud/krop/pkg/plane"
)

// endpointSlice stands in for a kcp that has one endpoint slice, with what is given as its endpoints.
func endpointSlice(t *testing.T, endpoints string) (known *Endpoints, asked *atomic.Int32, away *atomic.Bool) {
	t.Helper()
	asked, away = &atomic.Int32{}, &atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if want := "/clusters/provider1/apis/apis.kcp.io/v1alpha1/apiexportendpointslices/webapps.example.org"; r.URL.Path != want || away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "APIExportEndpointSlice", "apiVersion": "apis.kcp.io/v1alpha1", "status": {"endpoints": [%s]}}`, endpoints)
	}))
	t.Cleanup(server.Close)
	known, err := NewEndpoints(Config{REST: &rest.Config{Host: server.URL}, ExternalURL: "https://krop:7443"})
	if err != nil {
		t.Fatal(err)
	}
	return known, asked, away
}

func TestAnEndpointIsAskedForOnceAndOutlivesAFailureToAskAgain(t *testing.T) {
	known, asked, away := endpointSlice(t, `{"url": "https://advertised/services/apiexport/provider1/webapps.example.org"}`)
	first, err := known.URL(t.Context(), testExport)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := known.URL(t.Context(), testExport); err != nil || again != first || asked.Load() != 1 {
		t.Errorf("asked %d times: %q and %q, %v", asked.Load(), first, again, err)
	}
	away.Store(true)
	known.known.Add(testExport, endpoint{url: first, until: time.Now()})
	if again, err := known.URL(t.Context(), testExport); err != nil || again != first || asked.Load() < 2 {
		t.Errorf("once it is old, asked %d times: %q, %v", asked.Load(), again, err)
	}
	known.Forget(testExport)
	if url, err := known.URL(t.Context(), testExport); err == nil {
		t.Errorf("what was forgotten is still %q", url)
	}
}

func TestAnExportWithoutAddressesIsAskedForAgainSoon(t *testing.T) {
	known, asked, _ := endpointSlice(t, "")
	for range 2 {
		var notReady *NotReadyError
		if _, err := known.URL(t.Context(), testExport); !errors.As(err, &notReady) || !errors.Is(err, plane.ErrNotReachable) {
			t.Fatalf("got %v, want that it isn't ready", err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times within a moment", asked.Load())
	}
	if cached, ok := known.cached(testExport); !ok || time.Until(cached.until) > endpointRetry {
		t.Errorf("not asked for before %s", cached.until)
	}
}
