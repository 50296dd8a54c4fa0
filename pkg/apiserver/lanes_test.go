package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/apiserver"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// composedStorage writes a child in every write, by way of the server, as a parent does.
type composedStorage struct {
	mainStorage
	writeChild func(context.Context) (code int, err error)
}

func (s *composedStorage) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	switch code, err := s.writeChild(ctx); {
	case err != nil:
		return nil, false, err
	case code == http.StatusTooManyRequests:
		return nil, false, apierrors.NewTooManyRequests("the child got no turn", 1)
	case code != http.StatusNotFound:
		return nil, false, errors.New(http.StatusText(code))
	}
	return s.mainStorage.Delete(ctx, name, validate, options)
}

// deletion asks for the deletion of what isn't there, which is a write as good as any.
func (b *bed) deletion(ctx context.Context, client *http.Client, of v1alpha1.ExportKey) (code int, err error) {
	url := "https://localhost:" + b.port() + apiserver.ExportPath(of) + "/clusters/" + consumer.String() + apis + "/namespaces/default/widgets/none"
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// TestABurstOfParentsDoesNotStarveTheirChildren has many more writes at one time than there are places, each of
// which needs the write of a child, and that one of another.
func TestABurstOfParentsDoesNotStarveTheirChildren(t *testing.T) {
	b := start(t, func(o *apiserver.Options) { o.Limits[budget.Writes], o.Limits[budget.WritesPerConsumer] = 4, 4 })
	client := b.library(t)
	below := export
	for height := range 2 {
		child := below
		parent := v1alpha1.ExportKey{Cluster: export.Cluster, Name: fmt.Sprintf("layer%d.example.org", height+1)}
		served := servedAs(parent, b.store)
		served.Program = &engine.Program{Export: parent, Nodes: []engine.Node{{ID: "child", Origin: child}}}
		served.Storage = map[string]rest.Storage{gvr.Resource: &composedStorage{mainStorage{b.store.Main}, func(ctx context.Context) (int, error) {
			return b.deletion(ctx, client, child)
		}}}
		b.catalog.Set(served)
		below = parent
	}
	const burst = 24
	var failed atomic.Int32
	var writes sync.WaitGroup
	began := time.Now()
	for range burst {
		writes.Go(func() {
			if code, err := b.deletion(t.Context(), client, below); err != nil || code != http.StatusNotFound {
				t.Logf("%d, %v", code, err)
				failed.Add(1)
			}
		})
	}
	writes.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d writes failed within %s: their children got no turn", failed.Load(), burst, time.Since(began))
	}
}

// TestKindsInALoopHaveAHeight would not end if a loop were followed for ever.
func TestKindsInALoopHaveAHeight(t *testing.T) {
	b := start(t)
	looped := v1alpha1.ExportKey{Cluster: export.Cluster, Name: "looped.example.org"}
	served := servedAs(looped, b.store)
	served.Program = &engine.Program{Export: looped, Nodes: []engine.Node{{ID: "self", Origin: looped}}}
	b.catalog.Set(served)
	if code, err := b.deletion(t.Context(), b.library(t), looped); err != nil || code != http.StatusNotFound {
		t.Errorf("%d, %v", code, err)
	}
}
