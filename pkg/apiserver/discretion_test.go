package apiserver_test

import (
	"bytes"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"go.opendefense.cloud/krop/test/testbed/pki"
)

// TestMetricsDoNotGrowWithTenants uses names of providers, consumers, users and kinds, and paths that
// don't exist, and then looks for them in the metrics.
func TestMetricsDoNotGrowWithTenants(t *testing.T) {
	b := start(t)
	ctx := t.Context()
	who := b.client(t, pki.Client, shard)
	widgets := b.dynamic(t, who, consumer.String()).Namespace("team-a")
	watched, err := widgets.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := widgets.Create(ctx, widget("tenant-object", "x"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-watched.ResultChan():
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	watched.Stop()
	if _, err := widgets.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/apis/evil-group/v9/evil-resource", apis + "/namespaces/team-a/widgets/x/evil-subresource", apis + "/evil-resource"} {
		b.get(t, who, base+consumer.String()+path)
		b.get(t, b.client(t, pki.Client, "alice"), base+stranger.String()+path)
		b.get(t, nil, base+consumer.String()+path)
	}
	b.get(t, who, elsewhere)

	metrics := b.get(t, b.client(t, pki.Client, monitor), "/metrics").body
	if !strings.Contains(metrics, `resource="instances"`) {
		t.Error("requests for instances aren't counted")
	}
	for _, line := range strings.Split(metrics, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, name := range []string{"widgets", "example.org", "consumer1", "stranger1", "provider1", "team-a", "tenant-object", "evil", "alice", shard} {
			if strings.Contains(line, name) {
				t.Errorf("%q in %s", name, line)
			}
		}
	}
}

// TestLogsKeepSecrets looks for tokens and contents in the log at a verbosity above krop's own.
func TestLogsKeepSecrets(t *testing.T) {
	log := captureLog(t, "4")
	b := start(t)
	who := b.client(t, pki.Client, shard)
	const token, content = "t0p-s3cret-token", "t0p-s3cret-content"
	for _, headers := range [][]string{{"Authorization: Bearer " + token}, {"Authorization: Basic " + token}, {"Authorization: Bearer " + token, "X-Remote-User: x", "X-Remote-User: y"}} {
		for _, caller := range []*pki.Pair{nil, who, b.client(t, pki.Client, "alice"), b.client(t, pki.HostClient, "eve"), b.client(t, pki.RequestHeader, frontProxy)} {
			for _, path := range []string{elsewhere, base + consumer.String() + apis + "/namespaces/default/widgets", "/livez", "/metrics", "/services/../x"} {
				b.get(t, caller, path, headers...)
			}
		}
	}
	widgets := b.dynamic(t, who, consumer.String()).Namespace("default")
	if _, err := widgets.Create(t.Context(), widget("one", content), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := widgets.Create(t.Context(), widget("one", content), metav1.CreateOptions{}); err == nil {
		t.Fatal("created twice")
	}
	invalid := widget("two", content)
	invalid.Object["spec"] = map[string]any{"size": []any{content}}
	if _, err := widgets.Create(t.Context(), invalid, metav1.CreateOptions{}); err == nil {
		t.Fatal("an invalid object was created")
	}
	written := log.String()
	if !strings.Contains(written, "Unable to authenticate") {
		t.Error("nothing was logged: the test sees nothing")
	}
	for _, secret := range []string{token, content} {
		if at := strings.Index(written, secret); at >= 0 {
			t.Errorf("%q in the log: ...%.300s", secret, written[max(0, at-200):])
		}
	}
}

type logBuffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.content.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.content.String()
}

func captureLog(t *testing.T, verbosity string) *logBuffer {
	t.Helper()
	log := &logBuffer{}
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"v": verbosity, "logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	klog.SetOutput(log)
	return log
}
