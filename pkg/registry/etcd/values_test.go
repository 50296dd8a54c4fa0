package etcd_test

import (
	"testing"

	"go.opendefense.cloud/krop/pkg/registry/etcd"
)

func TestValuesAreKeptByName(t *testing.T) {
	server, err := etcd.Start(t.Context(), etcd.EmbeddedConfig{DataDir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	backend, err := etcd.Connect(t.Context(), etcd.BackendConfig{Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(backend.Close)
	some, others := backend.Values("some"), backend.Values("others")
	is := func(of *etcd.Values, name, want string) {
		t.Helper()
		if got, err := of.Get(t.Context(), name); err != nil || string(got) != want || (got == nil) != (want == "") {
			t.Errorf("%q is %q, %v; want %q", name, got, err, want)
		}
	}
	is(some, "a/b", "")
	for _, value := range []string{"first", "second"} {
		if err := some.Put(t.Context(), "a/b", []byte(value)); err != nil {
			t.Fatal(err)
		}
		is(some, "a/b", value)
	}
	is(some, "a", "")
	is(others, "a/b", "")
	for range 2 { // none is fine
		if err := some.Delete(t.Context(), "a/b"); err != nil {
			t.Fatal(err)
		}
	}
	is(some, "a/b", "")
}
