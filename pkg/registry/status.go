package registry

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

var (
	_ rest.Getter         = &StatusREST{}
	_ rest.TableConvertor = &StatusREST{}
)

// Readable is what the status subresource needs of the main resource.
type Readable interface {
	rest.Storage
	rest.Getter
	rest.TableConvertor
}

// StatusREST serves a status subresource that users can only read: status is what krop knows.
type StatusREST struct {
	main Readable
}

// NewStatusREST makes the status subresource of a kind.
func NewStatusREST(main Readable) *StatusREST { return &StatusREST{main: main} }

// New implements rest.Storage.
func (s *StatusREST) New() runtime.Object { return s.main.New() }

// Destroy implements rest.Storage. The store belongs to the main resource.
func (s *StatusREST) Destroy() {}

// Get implements rest.Getter.
func (s *StatusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.main.Get(ctx, name, options)
}

// ConvertToTable implements rest.TableConvertor, so that kubectl get --subresource=status has columns.
func (s *StatusREST) ConvertToTable(ctx context.Context, object runtime.Object, tableOptions runtime.Object) (*metav1.Table, error) {
	return s.main.ConvertToTable(ctx, object, tableOptions)
}
