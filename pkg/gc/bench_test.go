package gc_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"go.opendefense.cloud/krop/pkg/gc"
)

// BenchmarkChildStatusToInstanceStatus is the time from a controller's write of a child's status until the instance's
// status is seen on a watch of instances: watch, queue, pass, and the composer's reads, against a
// real kube-apiserver. No timer is on the path.
func BenchmarkChildStatusToInstanceStatus(b *testing.B) {
	w := newWorld(b)
	w.publish(w.compile(serverNode))
	w.loop(gc.Config{})
	w.create("db", map[string]any{"size": int64(1)})
	seen := make(chan string, 1024)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	go func() {
		_ = w.served.Records.Watch(ctx, func(_ watch.EventType, instance *unstructured.Unstructured) {
			if instance != nil {
				seen <- endpointOf(instance)
			}
		})
	}()
	row, _ := w.row("db", "server")
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		endpoint := strconv.Itoa(i)
		began := time.Now()
		w.setEndpoint(row, endpoint)
		for <-seen != endpoint {
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkIdleInstances is what the loop itself keeps in memory for each idle instance, beside
// what storage and its watch cache keep.
func BenchmarkIdleInstances(b *testing.B) {
	for _, count := range []int{1000, 5000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for b.Loop() {
				before := heap()
				loop := gc.New(gc.Config{Composer: nothing{}, Sources: silence{}, Resync: time.Hour})
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); loop.Run(ctx) }()
				stored := &many{count: count, passed: make(chan struct{}, count)}
				loop.Serve(export, oneNode, stored)
				for range count {
					<-stored.passed
				}
				b.ReportMetric(float64(heap()-before)/float64(count), "B/instance")
				runtime.KeepAlive(loop)
				cancel()
				<-ended
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
