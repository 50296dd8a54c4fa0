package kind

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestAnObjectWithoutMetadataIsNotLetPast(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("reserved metadata of an object that can't be read was taken for none")
		}
	}()
	metaOf(&runtime.Unknown{})
}
