package gc

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// StorageSince is when the storage of instances was used for the first time, by this replica or another.
// It is kept in etcd under key, next to what it speaks of, and is lost with it.
func StorageSince(ctx context.Context, client *clientv3.Client, key string) (time.Time, error) {
	stored, err := kept(ctx, client, key, time.Now().UTC().Format(time.RFC3339Nano))
	if err != nil {
		return time.Time{}, fmt.Errorf("reading since when there is storage: %w", err)
	}
	since, err := time.Parse(time.RFC3339Nano, stored)
	if err != nil {
		return time.Time{}, fmt.Errorf("since when there is storage, in %s: %w", key, err)
	}
	return since, nil
}

// Installation identifies the storage of instances, and with it the krop whose children are on a host that others
// share. It is kept like StorageSince, under a key of its own, and lost with the storage: what carries another
// identity is never taken for this krop's.
func Installation(ctx context.Context, client *clientv3.Client, key string) (string, error) {
	id, err := kept(ctx, client, key, string(uuid.NewUUID()))
	if err != nil {
		return "", fmt.Errorf("reading the identity of the installation: %w", err)
	}
	return id, nil
}

// kept is the value of the key, which is set if there is none.
func kept(ctx context.Context, client *clientv3.Client, key, initial string) (string, error) {
	answer, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, initial)).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return "", err
	}
	if answer.Succeeded {
		return initial, nil
	}
	return string(answer.Responses[0].GetResponseRange().Kvs[0].Value), nil
}
