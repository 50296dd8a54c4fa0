package registry

import (
	"context"
	"sync"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// Locks gives one lock per instance (or blueprint). Requests and the loop take it, so that within a process only one
// of them composes an instance at a time; between processes, resourceVersions do. A lock is never
// shared by two instances (a hashed mutex would be): while an instance is composed, a child that is
// itself an instance of a blueprint is written through kcp, and takes its own lock.
type Locks = KeyedLocks[v1alpha1.InstanceKey]

// KeyedLocks gives one lock per key.
//
// The zero value is ready. Safe for concurrent use.
type KeyedLocks[K comparable] struct {
	mutex sync.Mutex
	held  map[K]*lock
}

type lock struct {
	turn  chan struct{} // holds one token while the lock is free
	users int           // holders and waiters; the lock is forgotten at 0
}

// Lock waits for the key's lock, or for the end of ctx, which it then returns as error.
func (l *KeyedLocks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	entry := l.join(key)
	select {
	case <-entry.turn:
		return func() {
			entry.turn <- struct{}{}
			l.leave(key, entry)
		}, nil
	case <-ctx.Done():
		l.leave(key, entry)
		return nil, ctx.Err()
	}
}

func (l *KeyedLocks[K]) join(key K) *lock {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.held == nil {
		l.held = map[K]*lock{}
	}
	entry, ok := l.held[key]
	if !ok {
		entry = &lock{turn: make(chan struct{}, 1)}
		entry.turn <- struct{}{}
		l.held[key] = entry
	}
	entry.users++
	return entry
}

func (l *KeyedLocks[K]) leave(key K, entry *lock) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry.users--
	if entry.users == 0 {
		delete(l.held, key)
	}
}
