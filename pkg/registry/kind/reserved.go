package kind

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

const clusterAnnotation = logicalcluster.AnnotationKey

// finalizerElement is krop's finalizer as an element of a set of field paths.
var finalizerElement = value.NewValueInterface(v1alpha1.Finalizer)

// collectorFinalizers are removed by a garbage collector that never sees these kinds: an object that
// has one would never go. What they ask for is done otherwise: krop's own finalizer always waits for
// the children.
var collectorFinalizers = sets.New(metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents)

type internalKey struct{}

// WithInternal marks a write as krop's own: it may set, change and remove reserved metadata. Never
// derive it from a user's request before that request has been admitted.
func WithInternal(ctx context.Context) context.Context {
	return context.WithValue(ctx, internalKey{}, true)
}

func isInternal(ctx context.Context) bool {
	internal, _ := ctx.Value(internalKey{}).(bool)
	return internal
}

// Reserved says whether a label, annotation or finalizer belongs to krop or to kcp's claims: users
// can't add, change or remove it. kcp.io/cluster is stamped anyway, whoever writes.
func Reserved(key string) bool {
	return strings.HasPrefix(key, v1alpha1.Prefix) ||
		strings.HasPrefix(key, claimPrefix)
}

// reservation keeps reserved metadata as it is stored. It doesn't refuse a write that differs: people
// apply what they once got, and replace objects with files that know nothing of finalizers. They are warned instead.
type reservation struct {
	allowed sets.Set[string] // what users may write although it is reserved
}

func (r reservation) keeps(key string) bool { return Reserved(key) && !r.allowed.Has(key) }

// forAnnotations is the reservation of annotations. The consumer's cluster is a label of children; as an annotation of
// the same name it is for expressions only, and never stored.
func (r reservation) forAnnotations() reservation {
	return reservation{allowed: r.allowed.Difference(sets.New(v1alpha1.AnnotationConsumerCluster))}
}

// apply makes object's reserved metadata that of old, which is nil on create.
func (r reservation) apply(ctx context.Context, object, old metav1.Object) {
	if !isInternal(ctx) {
		var labels, annotations map[string]string
		var finalizers []string
		if old != nil {
			labels, annotations, finalizers = old.GetLabels(), old.GetAnnotations(), old.GetFinalizers()
		}
		if kept, changed := r.keepValues(object.GetLabels(), labels); len(changed) > 0 {
			object.SetLabels(kept)
			warnReserved(ctx, "labels", changed)
		}
		if kept, changed := r.forAnnotations().keepValues(object.GetAnnotations(), annotations); len(changed) > 0 {
			object.SetAnnotations(kept)
			warnReserved(ctx, "annotations", changed)
		}
		if kept, changed := r.keepElements(object.GetFinalizers(), finalizers); len(changed) > 0 {
			object.SetFinalizers(kept)
			warnReserved(ctx, "finalizers", changed)
		}
	}
	dropCollectorFinalizers(object)
	stampCluster(ctx, object)
}

// keepValues returns sent with the reserved keys as in stored, and the keys for which that makes a difference.
func (r reservation) keepValues(sent, stored map[string]string) (kept map[string]string, changed []string) {
	kept = maps.Clone(sent)
	maps.DeleteFunc(kept, func(key, value string) bool {
		was, exists := stored[key]
		return r.keeps(key) && !(exists && was == value) && record(&changed, key)
	})
	for key, value := range stored {
		if _, exists := kept[key]; r.keeps(key) && !exists {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
			record(&changed, key)
		}
	}
	slices.Sort(changed)
	return kept, slices.Compact(changed)
}

// keepElements is keepValues for a list, whose order it keeps.
func (r reservation) keepElements(sent, stored []string) (kept, changed []string) {
	for _, element := range sent {
		if r.keeps(element) && !slices.Contains(stored, element) {
			record(&changed, element)
			continue
		}
		kept = append(kept, element)
	}
	for _, element := range stored {
		if r.keeps(element) && !slices.Contains(kept, element) {
			kept = append(kept, element)
			record(&changed, element)
		}
	}
	return kept, changed
}

func record(list *[]string, key string) bool {
	*list = append(*list, key)
	return true
}

func warnReserved(ctx context.Context, where string, keys []string) {
	warning.AddWarning(ctx, "", fmt.Sprintf("metadata.%s: %s can't be written by users and was left as it was", where, strings.Join(keys, ", ")))
}

func dropCollectorFinalizers(object metav1.Object) {
	finalizers := object.GetFinalizers()
	kept := slices.DeleteFunc(slices.Clone(finalizers), collectorFinalizers.Has)
	if len(kept) != len(finalizers) {
		object.SetFinalizers(kept)
	}
}

// stampCluster says which logical cluster the object belongs to, over whatever the client sent.
func stampCluster(ctx context.Context, object metav1.Object) {
	cluster, ok := etcd.ClusterFrom(ctx)
	annotations := object.GetAnnotations()
	if !ok || annotations[clusterAnnotation] == cluster.String() {
		return // without a cluster there is no key either: nothing can be stored
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterAnnotation] = cluster.String()
	object.SetAnnotations(annotations)
}
