package engine

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func TestHashOfKindsIsOfWhatTheyAre(t *testing.T) {
	kinds := UsedKinds{
		{Target: v1alpha1.TargetConsumer, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Hash: "a", Document: "x"},
		{Target: v1alpha1.TargetProvider, GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Hash: "b", Document: "y"},
	}
	for name, test := range map[string]struct {
		change func(UsedKinds)
		same   bool
	}{
		"another order":        {func(k UsedKinds) { slices.Reverse(k) }, true},
		"another kind's news":  {func(k UsedKinds) { k[0].Document = "z" }, true},
		"another schema":       {func(k UsedKinds) { k[0].Hash = "c" }, false},
		"no longer served":     {func(k UsedKinds) { k[1].Hash = "" }, false},
		"schemas change sides": {func(k UsedKinds) { k[0].Hash, k[1].Hash = "b", "a" }, false},
	} {
		changed := slices.Clone(kinds)
		test.change(changed)
		if same := changed.Hash() == kinds.Hash(); same != test.same {
			t.Errorf("%s: the same %v, want %v", name, same, test.same)
		}
	}
}
