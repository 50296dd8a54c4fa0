package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/plane"
)

const (
	// endpointFreshness bounds how long an address is used without asking kcp again. It changes only when
	// a kcp admin moves the virtual workspaces.
	endpointFreshness = 10 * time.Minute
	// endpointRetry bounds how often kcp is asked for an address that isn't there yet.
	endpointRetry = 500 * time.Millisecond
	// maxEndpoints bounds what is remembered, at some 200 bytes each: an export may be asked for once more after it was
	// forgotten, by a pass that had begun before.
	maxEndpoints = 16384
)

// NotReadyError says that an export has no endpoint yet: nobody has bound it, or kcp has only just
// noticed. It is a Status with code 503 that asks to try again.
type NotReadyError struct {
	// Export that has no endpoint.
	Export v1alpha1.ExportKey
}

// Error names the export.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("kcp has no endpoint for the APIExport %s yet", e.Export)
}

// Is makes it a plane.ErrNotReachable.
func (e *NotReadyError) Is(target error) bool { return target == plane.ErrNotReachable }

// Status is what a client sees.
func (e *NotReadyError) Status() metav1.Status {
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusServiceUnavailable,
		Reason:  metav1.StatusReasonServiceUnavailable,
		Message: e.Error(),
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}
}

// Endpoints knows where exports' virtual workspaces are. Safe for concurrent use.
type Endpoints struct {
	kcp    *kcp
	flight singleflight.Group
	known  *lru.Cache // v1alpha1.ExportKey -> endpoint
}

type endpoint struct {
	url   string // empty: not there yet
	until time.Time
}

// NewEndpoints makes an empty cache.
func NewEndpoints(config Config) (*Endpoints, error) {
	k, err := newKCP(config)
	if err != nil {
		return nil, err
	}
	return &Endpoints{kcp: k, known: lru.New(maxEndpoints)}, nil
}

// URL is the address of the export's virtual workspace, without /clusters/...: below it, krop reaches the
// workspaces of consumers. It fails with NotReadyError while the export has no endpoint; that, and any
// failure to ask kcp, is a plane.ErrNotReachable. What kcp itself answers is passed on.
func (e *Endpoints) URL(ctx context.Context, export v1alpha1.ExportKey) (string, error) {
	cached, ok := e.cached(export)
	if ok && time.Now().Before(cached.until) {
		return cached.result(export)
	}
	found, err, _ := e.flight.Do(export.String(), func() (any, error) {
		// Detached: the answer is everybody's, so the first caller's cancellation must not end it.
		return e.refresh(context.WithoutCancel(ctx), export)
	})
	switch {
	case err == nil:
		return found.(endpoint).result(export)
	case cached.url != "":
		return cached.url, nil
	default:
		return "", unreachable(err)
	}
}

func (e *Endpoints) cached(export v1alpha1.ExportKey) (endpoint, bool) {
	value, ok := e.known.Get(export)
	if !ok {
		return endpoint{}, false
	}
	return value.(endpoint), true
}

// unreachable marks a failure of the way to kcp.
func unreachable(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	return fmt.Errorf("%w: %w", plane.ErrNotReachable, err)
}

// Forget drops what is known of an export.
func (e *Endpoints) Forget(export v1alpha1.ExportKey) { e.known.Remove(export) }

func (c endpoint) result(export v1alpha1.ExportKey) (string, error) {
	if c.url == "" {
		return "", &NotReadyError{Export: export}
	}
	return c.url, nil
}

// refreshTimeout bounds one look at kcp; requests wait for it.
const refreshTimeout = 5 * time.Second

func (e *Endpoints) refresh(ctx context.Context, export v1alpha1.ExportKey) (endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	w, err := e.kcp.workspace(export.Cluster.Path())
	if err != nil {
		return endpoint{}, err
	}
	// kcp makes a slice of the export's name for each export.
	slice, err := w.kcp.ApisV1alpha1().APIExportEndpointSlices().Get(ctx, export.Name, metav1.GetOptions{})
	if err != nil {
		return endpoint{}, explained(err, w.cluster, "get", apiExportEndpointLists)
	}
	addresses := make([]string, 0, len(slice.Status.APIExportEndpoints))
	for _, each := range slice.Status.APIExportEndpoints {
		addresses = append(addresses, each.URL)
	}
	found := endpoint{url: e.kcp.reachable(addresses), until: time.Now().Add(endpointFreshness)}
	if found.url == "" {
		found.until = time.Now().Add(endpointRetry)
	}
	e.known.Add(export, found)
	return found, nil
}

// reachable picks the address of the shard that krop serves, and turns it into one that krop can reach: the
// path is kcp's, the host is the configured one, since the advertised host may be krop's own.
func (k *kcp) reachable(addresses []string) string {
	chosen := ""
	for _, address := range addresses {
		if len(addresses) == 1 || strings.HasPrefix(address, k.external+"/") {
			chosen = address
			break
		}
	}
	if chosen == "" {
		return ""
	}
	parsed, err := url.Parse(chosen)
	if err != nil {
		return ""
	}
	_, rest, found := strings.Cut(parsed.Path, virtualWorkspacePrefix+"/")
	if !found {
		return ""
	}
	return k.virtual.JoinPath(virtualWorkspacePrefix, rest).String()
}
