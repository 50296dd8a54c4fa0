package instance

import (
	"context"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"go.opendefense.cloud/krop/pkg/registry"
)

// DeleteCollection is also the first that krop hears of a namespace that is being deleted: from now
// on, the namespace may not take instances any more.
func (r *REST) DeleteCollection(ctx context.Context, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions, listOptions *metainternalversion.ListOptions) (runtime.Object, error) {
	key, err := registry.KeyIn(ctx, r.program.Load().Export, "")
	if err != nil {
		return nil, err
	}
	r.config.Namespaces.Forget(key.Export, key.Cluster, key.Namespace)
	return r.Store.DeleteCollection(ctx, validate, options, listOptions)
}
