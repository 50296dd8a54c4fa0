package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage/value"
)

// clusterTransformer makes every object that is read say which cluster its key belongs to. One
// stored object without kcp.io/cluster would keep the watch cache of its kind, for all tenants, from
// ever becoming ready, and one with a wrong value would be served to the wrong tenant.
type clusterTransformer struct {
	prefix string // of all keys of the kind, ending in a slash
}

var _ value.Transformer = clusterTransformer{}

// TransformFromStorage gives the object the cluster of its key. It calls what it had to change
// stale, so that the next update writes it.
func (t clusterTransformer) TransformFromStorage(_ context.Context, data []byte, key value.Context) ([]byte, bool, error) {
	cluster, ok := t.clusterOf(string(key.AuthenticatedData()))
	if !ok || storedCluster(data) == cluster {
		return data, false, nil
	}
	restored, err := withCluster(data, cluster)
	if err != nil {
		return nil, false, fmt.Errorf("restoring the cluster of %s: %w", key.AuthenticatedData(), err)
	}
	return restored, true, nil
}

// TransformToStorage changes nothing.
func (clusterTransformer) TransformToStorage(_ context.Context, data []byte, _ value.Context) ([]byte, error) {
	return data, nil
}

func (t clusterTransformer) clusterOf(key string) (string, bool) {
	rest, ok := strings.CutPrefix(key, t.prefix)
	if !ok {
		return "", false
	}
	cluster, _, ok := strings.Cut(rest, "/")
	return cluster, ok
}

// storedCluster reads just far enough: objects are stored with sorted fields, so the annotations are
// among the first bytes of even the largest object.
func storedCluster(data []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(data))
	for _, field := range []string{"metadata", "annotations", logicalcluster.AnnotationKey} {
		if !enter(decoder, field) {
			return ""
		}
	}
	token, _ := decoder.Token()
	cluster, _ := token.(string)
	return cluster
}

// enter reads an object up to the value of the field.
func enter(decoder *json.Decoder, field string) bool {
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return false
	}
	var skipped json.RawMessage
	for decoder.More() {
		if token, err := decoder.Token(); err != nil || token == field {
			return err == nil
		}
		if err := decoder.Decode(&skipped); err != nil {
			return false
		}
	}
	return false
}

func withCluster(data []byte, cluster string) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[logicalcluster.AnnotationKey] = cluster
	object.SetAnnotations(annotations)
	return object.MarshalJSON()
}
