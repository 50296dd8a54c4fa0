package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/apiserver"
)

func TestProbeAsksOnceASecondAtMost(t *testing.T) {
	asked := 0
	probe := apiserver.Probe("storage", func(context.Context) error { asked++; return errors.New("no answer") })
	request := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	for range 10 {
		if probe.Check(request) == nil {
			t.Error("a failure was forgotten")
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestProbeGivesUpBeforeTheKubeletDoes(t *testing.T) {
	probe := apiserver.Probe("kcp", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	began := time.Now()
	if err := probe.Check(httptest.NewRequest(http.MethodGet, "/readyz", nil)); err == nil {
		t.Error("no answer counts as a good one")
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestLoopThatStoppedTickingIsNoticed(t *testing.T) {
	last := time.Now()
	check := apiserver.Ticking("loop", time.Minute, func() time.Time { return last })
	if err := check.Check(nil); err != nil {
		t.Error(err)
	}
	last = last.Add(-2 * time.Minute)
	if err := check.Check(nil); err == nil {
		t.Error("a loop that stands still is alive")
	}
}

func TestNotReadyWhileExportsAreAwaited(t *testing.T) {
	b := start(t)
	awaited := v1alpha1.ExportKey{Cluster: "provider1", Name: "others.example.org"}
	b.catalog.Hold(awaited, "others") // a blueprint that doesn't compile: krop is ready for all others
	for _, step := range []struct {
		change func()
		ready  int
	}{
		{func() {}, http.StatusOK},
		{func() { b.catalog.Await(awaited) }, http.StatusInternalServerError},
		{func() { b.catalog.Hold(awaited, "others") }, http.StatusOK},
		{func() { b.catalog.Await(awaited); b.catalog.Remove(awaited) }, http.StatusOK},
	} {
		step.change()
		got := b.get(t, nil, "/readyz")
		if got.code != step.ready || (got.code != http.StatusOK) != strings.Contains(got.body, "[-]exports") {
			t.Errorf("/readyz: %d, want %d: %s", got.code, step.ready, got.body)
		}
		if got := b.get(t, nil, "/livez"); got.code != http.StatusOK {
			t.Errorf("/livez: %d", got.code)
		}
	}
}
