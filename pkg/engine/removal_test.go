package engine

import (
	"slices"
	"testing"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// a <- b <- c, and d <- e.
var twoChains = Program{Nodes: []Node{
	{ID: "a"},
	{ID: "d"},
	{ID: "b", DependsOn: []v1alpha1.NodeID{"a"}, Level: 1},
	{ID: "e", DependsOn: []v1alpha1.NodeID{"d"}, Level: 1},
	{ID: "c", DependsOn: []v1alpha1.NodeID{"b"}, Level: 2},
}}

func TestAChildThatGoesHoldsBackOnlyWhatItDependsOn(t *testing.T) {
	level := map[string]int32{"a": 0, "d": 0, "b": 1, "e": 1, "c": 2, "dropped": 1}
	for name, test := range map[string]struct{ going, want []string }{
		"the end of each chain":                  {[]string{"a", "b", "c", "d", "e"}, []string{"c", "e"}},
		"not directly either":                    {[]string{"a", "c"}, []string{"c"}},
		"independent ones of all waves":          {[]string{"a", "e"}, []string{"a", "e"}},
		"of a dropped node only the wave counts": {[]string{"a", "dropped", "e"}, []string{"dropped", "e"}},
	} {
		var going []v1alpha1.ComposedResource
		for _, id := range test.going {
			child := row(id, id)
			child.Wave = level[id]
			going = append(going, child)
		}
		var got []string
		for _, child := range twoChains.Removable(append(going, row("d", ""))) {
			got = append(got, child.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: of %v, %v may go, want %v", name, test.going, got, test.want)
		}
	}
}

// The graph may have been another one when the child was written.
func TestOnlyTheWaveCountsForAChildThatWasWrittenAtAnotherLevel(t *testing.T) {
	a, e := row("a", "a"), row("e", "e")
	e.Wave = 2
	if got := twoChains.Removable([]v1alpha1.ComposedResource{a, e}); len(got) != 1 || got[0].ID != "e" {
		t.Errorf("%v may go", got)
	}
}
