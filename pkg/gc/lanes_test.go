package gc

import (
	"slices"
	"strconv"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

// testShare is more than these tests have keys, where it isn't what they are about.
var testShare = shares{100, 100, 100}

func keyOf(cluster, name string) v1alpha1.InstanceKey {
	return v1alpha1.InstanceKey{Cluster: logicalcluster.Name(cluster), Name: name}
}

func popAll(l *lanes) []string {
	var names []string
	for l.Len() > 0 {
		names = append(names, l.Pop().Name)
	}
	return names
}

func TestClustersTakeTurns(t *testing.T) {
	l := newLanes(testShare, func(v1alpha1.InstanceKey) bool { return true }, func() {})
	for _, name := range []string{"big1", "big2", "big3"} {
		l.Push(keyOf("big", name))
	}
	l.Push(keyOf("small", "small1"))
	if got, want := popAll(l), []string{"big1", "small1", "big2", "big3"}; !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func TestEventsGoBeforeBackgroundWorkWhichStillGetsItsShare(t *testing.T) {
	l := newLanes(testShare, func(key v1alpha1.InstanceKey) bool { return key.Name[0] == 'e' }, func() {})
	for i := range 2 {
		l.Push(keyOf("c", "b"+strconv.Itoa(i)))
	}
	for i := range 10 {
		l.Push(keyOf("c", "e"+strconv.Itoa(i)))
	}
	got := popAll(l)
	want := []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "b0", "e8", "e9", "b1"}
	if !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func TestAnEventMovesAKeyOutOfTheBackground(t *testing.T) {
	urgent := map[string]bool{}
	l := newLanes(testShare, func(key v1alpha1.InstanceKey) bool { return urgent[key.Name] }, func() {})
	for _, name := range []string{"a", "b", "c"} {
		l.Push(keyOf("c", name))
	}
	urgent["c"] = true
	l.Touch(keyOf("c", "c"))
	if l.Len() != 3 {
		t.Errorf("length is %d, want 3", l.Len())
	}
	if got, want := popAll(l), []string{"c", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func ofExport(key v1alpha1.InstanceKey, export string) v1alpha1.InstanceKey {
	key.Export.Name = export
	return key
}

func TestAClusterHasNoMoreThanItsShareOfWorkersInBothLanesTogether(t *testing.T) {
	l := newLanes(shares{2, 2, 2}, func(key v1alpha1.InstanceKey) bool { return key.Name[0] == 'e' }, func() {})
	for _, name := range []string{"b1", "b2", "e1", "e2"} {
		l.Push(keyOf("big", name))
	}
	l.Push(ofExport(keyOf("small", "b3"), "other"))
	if got, want := popAll(l), []string{"e1", "e2", "b3"}; !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
	l.left(keyOf("big", "e1"))
	if got, want := popAll(l), []string{"b1"}; !slices.Equal(got, want) {
		t.Errorf("after one was left, %v, want %v", got, want)
	}
	l.left(keyOf("big", "e2"))
	l.left(keyOf("big", "b1"))
	if got, want := popAll(l), []string{"b2"}; !slices.Equal(got, want) {
		t.Errorf("after all were left, %v, want %v", got, want)
	}
}

func TestAnExportHasNoMoreThanItsShareOfWorkersInTheBackground(t *testing.T) {
	l := newLanes(shares{2, 2, 2}, func(key v1alpha1.InstanceKey) bool { return key.Name[0] == 'e' }, func() {})
	for _, cluster := range []string{"c1", "c2", "c3"} {
		l.Push(ofExport(keyOf(cluster, "b-"+cluster), "edited"))
	}
	l.Push(ofExport(keyOf("c3", "other"), "other"))
	l.Push(ofExport(keyOf("c4", "e1"), "edited"))
	if got, want := popAll(l), []string{"e1", "b-c1", "other", "b-c2"}; !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
	l.left(ofExport(keyOf("c4", "e1"), "edited"))
	if got := popAll(l); len(got) > 0 {
		t.Errorf("an event that was served has made room for %v in the background", got)
	}
	l.left(ofExport(keyOf("c1", "b-c1"), "edited"))
	if got, want := popAll(l), []string{"b-c3"}; !slices.Equal(got, want) {
		t.Errorf("after one was left, %v, want %v", got, want)
	}
}

func TestAClusterHasLessInTheBackground(t *testing.T) {
	l := newLanes(shares{3, 1, 2}, func(key v1alpha1.InstanceKey) bool { return key.Name[0] == 'e' }, func() {})
	for _, name := range []string{"b1", "b2", "e1", "e2"} {
		l.Push(keyOf("big", name))
	}
	l.Push(keyOf("small", "b3"))
	if got, want := popAll(l), []string{"e1", "e2", "b1", "b3"}; !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
	l.left(keyOf("big", "e1"))
	if got := popAll(l); len(got) > 0 {
		t.Errorf("an event that was served has made room for %v in the background", got)
	}
	if !l.left(keyOf("big", "b1")) {
		t.Error("nobody is woken for another export's, and another cluster's")
	}
	if got, want := popAll(l), []string{"b2"}; !slices.Equal(got, want) {
		t.Errorf("after one was left, %v, want %v", got, want)
	}
}

// TestWorkForTwoIsSaid has a key leave that kept one of its cluster and another of its export waiting.
func TestWorkForTwoIsSaid(t *testing.T) {
	l := newLanes(shares{1, 1, 1}, func(v1alpha1.InstanceKey) bool { return false }, func() {})
	both := ofExport(keyOf("c1", "both"), "x")
	for _, key := range []v1alpha1.InstanceKey{both, ofExport(keyOf("c1", "cluster"), "y"), ofExport(keyOf("c2", "export"), "x")} {
		l.Push(key)
	}
	if got, want := popAll(l), []string{"both"}; !slices.Equal(got, want) {
		t.Fatalf("order is %v, want %v", got, want)
	}
	if !l.left(both) {
		t.Error("nobody is woken for the second")
	}
	if got, want := popAll(l), []string{"cluster", "export"}; !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

// TestAWorkerIsWokenForAKeyThatAnEventSetsFree has a worker sleep while all that waits is kept back.
func TestAWorkerIsWokenForAKeyThatAnEventSetsFree(t *testing.T) {
	q := newQueue(func() {})
	defer q.ShutDown()
	waits := keyOf("waits", "a")
	for i := range budget.BackgroundPassesPerExport.Default {
		q.now(keyOf("c"+strconv.Itoa(i), "a"), routine)
		q.Get()
	}
	q.now(waits, routine)
	if q.Len() != 0 {
		t.Fatal("an export has more than its share in the background")
	}
	got := make(chan v1alpha1.InstanceKey)
	go func() {
		key, _ := q.Get()
		got <- key
	}()
	q.now(waits, forced)
	if key := <-got; key != waits {
		t.Errorf("got %v", key)
	}
}
