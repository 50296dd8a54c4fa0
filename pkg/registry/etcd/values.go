package etcd

import (
	"context"
	"fmt"
	"path"
)

// Values are bytes under names, beside the API objects: what krop wants to know again after a restart, and could do
// without. They have no versions and are not watched. Safe for concurrent use, also by several replicas, of which the
// last one to write wins.
type Values struct {
	backend *Backend
	folder  string
}

// Values are those in a folder of their own, which must not have the form of a logical cluster's name.
func (b *Backend) Values(folder string) *Values {
	return &Values{backend: b, folder: path.Join(b.prefix, folder)}
}

// Get reads a value; nil if there is none.
func (v *Values) Get(ctx context.Context, name string) ([]byte, error) {
	answer, err := v.backend.client.KV.Get(ctx, v.key(name))
	if err != nil {
		return nil, fmt.Errorf("reading %s from etcd: %w", name, err)
	}
	if len(answer.Kvs) == 0 {
		return nil, nil
	}
	return answer.Kvs[0].Value, nil
}

// Put writes a value.
func (v *Values) Put(ctx context.Context, name string, value []byte) error {
	if _, err := v.backend.client.KV.Put(ctx, v.key(name), string(value)); err != nil {
		return fmt.Errorf("writing %s to etcd: %w", name, err)
	}
	return nil
}

// Delete deletes a value. None is fine.
func (v *Values) Delete(ctx context.Context, name string) error {
	if _, err := v.backend.client.KV.Delete(ctx, v.key(name)); err != nil {
		return fmt.Errorf("deleting %s from etcd: %w", name, err)
	}
	return nil
}

func (v *Values) key(name string) string { return path.Join(v.folder, name) }
