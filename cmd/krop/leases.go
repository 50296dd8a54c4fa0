package main

import (
	"context"
	"os"

	"k8s.io/apimachinery/pkg/util/rand"

	"go.opendefense.cloud/krop/pkg/gc"
)

// leases divide the loop among replicas. With an etcd of its own there is no other replica, and a
// restart must not wait for the lease of the process before it.
type leases struct {
	shared *gc.Leases // nil if there is nobody to share with
}

func leasesOf(storage *storage) leases {
	if storage.embedded != nil {
		return leases{}
	}
	return leases{gc.NewLeases(storage.Client().Client, storage.Prefix()+"/leases", replicaName())}
}

// ownership is nil for a single replica, which then looks after everything.
func (l leases) ownership() gc.Ownership {
	if l.shared == nil {
		return nil
	}
	return l.shared
}

func (l leases) run(ctx context.Context) {
	if l.shared != nil {
		l.shared.Run(ctx)
	}
}

// replicaSuffixLength makes two processes of one host name differ: one in 27^5 pairs would not.
const replicaSuffixLength = 5

// replicaName tells this process from other replicas.
func replicaName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "krop"
	}
	return name + "-" + rand.String(replicaSuffixLength)
}
