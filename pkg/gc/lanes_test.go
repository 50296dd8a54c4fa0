package gc

import (
	"slices"
	"strconv"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

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
	l := newLanes(func(v1alpha1.InstanceKey) bool { return true }, func() {})
	for _, name := range []string{"big1", "big2", "big3"} {
		l.Push(keyOf("big", name))
	}
	l.Push(keyOf("small", "small1"))
	if got, want := popAll(l), []string{"big1", "small1", "big2", "big3"}; !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

func TestEventsGoBeforeBackgroundWorkWhichStillGetsItsShare(t *testing.T) {
	l := newLanes(func(key v1alpha1.InstanceKey) bool { return key.Name[0] == 'e' }, func() {})
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
	l := newLanes(func(key v1alpha1.InstanceKey) bool { return urgent[key.Name] }, func() {})
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
