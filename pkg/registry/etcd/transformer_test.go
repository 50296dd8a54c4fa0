package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

type dataKey string

func (k dataKey) AuthenticatedData() []byte { return []byte(k) }

var transformer = clusterTransformer{prefix: "/krop/provider/example.com/databases/"}

const storedKey = dataKey("/krop/provider/example.com/databases/one/default/a")

func TestObjectsGetTheClusterOfTheirKey(t *testing.T) {
	const rest = `"name":"a","uid":"1"},"spec":{"big":9007199254740993,"float":1.5}}`
	want := parsed(t, `{"apiVersion":"example.com/v1","kind":"Database","metadata":{"annotations":{"kcp.io/cluster":"one"},`+rest)
	for name, stored := range map[string]string{
		"no annotations":              `{"apiVersion":"example.com/v1","kind":"Database","metadata":{` + rest,
		"no such annotation":          `{"apiVersion":"example.com/v1","kind":"Database","metadata":{"annotations":{},` + rest,
		"another cluster":             `{"apiVersion":"example.com/v1","kind":"Database","metadata":{"annotations":{"kcp.io/cluster":"two"},` + rest,
		"annotations that are a list": `{"apiVersion":"example.com/v1","kind":"Database","metadata":{"annotations":[],` + rest,
		"a cluster that is a number":  `{"apiVersion":"example.com/v1","kind":"Database","metadata":{"annotations":{"kcp.io/cluster":1},` + rest,
		"in another order":            `{"kind":"Database","metadata":{"labels":null,"annotations":null,` + rest[:len(rest)-1] + `,"apiVersion":"example.com/v1"}`,
	} {
		got, stale, err := transformer.TransformFromStorage(context.Background(), []byte(stored), storedKey)
		if err != nil || !stale {
			t.Errorf("%s: stale %v, %v", name, stale, err)
			continue
		}
		object := parsed(t, string(got))
		delete(object["metadata"].(map[string]any), "labels")
		if !reflect.DeepEqual(object, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestObjectsThatSayTheirClusterAreLeftAlone(t *testing.T) {
	for name, stored := range map[string]string{
		"as stored":            `{"apiVersion":"v1","kind":"X","metadata":{"annotations":{"a":"b","kcp.io/cluster":"one"}},"spec":{}}`,
		"the same words below": `{"metadata":{"labels":{"annotations":"x"},"annotations":{"kcp.io/cluster":"one"}},"spec":{"metadata":{"annotations":{"kcp.io/cluster":"two"}}}}`,
	} {
		got, stale, err := transformer.TransformFromStorage(context.Background(), []byte(stored), storedKey)
		if err != nil || stale || string(got) != stored {
			t.Errorf("%s: %s, stale %v, %v", name, got, stale, err)
		}
	}
}

func TestOtherKeysAreLeftAlone(t *testing.T) {
	const stored = `{"kind":"X"}`
	for _, key := range []dataKey{"/elsewhere/one/a", "/krop/provider/example.com/databases/", "/krop/provider/example.com/databases/one"} {
		if got, stale, err := transformer.TransformFromStorage(context.Background(), []byte(stored), key); err != nil || stale || string(got) != stored {
			t.Errorf("%s: %s, stale %v, %v", key, got, stale, err)
		}
	}
}

func TestGarbageIsAnErrorThatNamesTheKeyOnly(t *testing.T) {
	_, _, err := transformer.TransformFromStorage(context.Background(), []byte(`{"secret`), storedKey)
	if err == nil {
		t.Error("garbage was read")
	}
}

func parsed(t *testing.T, data string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal([]byte(data), &object); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return object
}

func BenchmarkTransformFromStorage(b *testing.B) {
	spec := make([]string, 1000)
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "X", "spec": spec,
		"metadata": map[string]any{"annotations": map[string]string{"kcp.io/cluster": "one"}, "name": fmt.Sprint(b.N)},
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, stale, err := transformer.TransformFromStorage(context.Background(), data, storedKey); err != nil || stale {
			b.Fatal(stale, err)
		}
	}
}
