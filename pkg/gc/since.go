package gc

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// StorageSince is when the storage of instances was used for the first time, by this replica or another.
// It is kept in etcd under key, next to what it speaks of, and is lost with it.
func StorageSince(ctx context.Context, client *clientv3.Client, key string) (time.Time, error) {
	now := time.Now().UTC()
	answer, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, now.Format(time.RFC3339Nano))).
		Else(clientv3.OpGet(key)).
		Commit()
	if err != nil {
		return time.Time{}, fmt.Errorf("reading since when there is storage: %w", err)
	}
	if answer.Succeeded {
		return now, nil
	}
	stored := string(answer.Responses[0].GetResponseRange().Kvs[0].Value)
	since, err := time.Parse(time.RFC3339Nano, stored)
	if err != nil {
		return time.Time{}, fmt.Errorf("since when there is storage, in %s: %w", key, err)
	}
	return since, nil
}
