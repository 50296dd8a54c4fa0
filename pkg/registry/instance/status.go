package instance

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// StatusREST serves the status subresource, which users can only read: status is what krop knows.
type StatusREST struct {
	rest *REST
}

// NewStatusREST makes the status subresource of a kind.
func NewStatusREST(main *REST) *StatusREST { return &StatusREST{rest: main} }

// New implements rest.Storage.
func (s *StatusREST) New() runtime.Object { return s.rest.New() }

// Destroy implements rest.Storage. The store belongs to the main resource.
func (s *StatusREST) Destroy() {}

// Get implements rest.Getter.
func (s *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.rest.Get(ctx, name, options)
}

// ConvertToTable implements rest.TableConvertor, so that kubectl get --subresource=status has columns.
func (s *StatusREST) ConvertToTable(ctx context.Context, object runtime.Object, tableOptions runtime.Object) (*metav1.Table, error) {
	return s.rest.ConvertToTable(ctx, object, tableOptions)
}

var _ rest.TableConvertor = &StatusREST{}
