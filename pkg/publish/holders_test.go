package publish_test

import (
	"testing"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/test/testbed"
)

func TestHoldersAreReadFromKcpAndUnknownWhereTheyCanNotBe(t *testing.T) {
	w := start(t)
	program := w.program(t, "holds", "Hold")
	claims := w.publishAll(t, program)
	consumer := w.cluster(t, testbed.Consumer)
	bindings := w.follow(t, program.Export)
	if holders, known := bindings.Holders(t.Context(), program.Export); !known || len(holders) != 0 {
		t.Errorf("before: %v, known %t", holders, known)
	}
	w.bind(t, testbed.Consumer, program.Export.Name, claims)
	if holders, known := bindings.Holders(t.Context(), program.Export); !known || len(holders) != 1 || !holders.Has(consumer) {
		t.Errorf("bound: %v, known %t", holders, known)
	}
	w.kubectl(t, testbed.Consumer, "delete", "apibinding", program.Export.Name)
	if holders, known := bindings.Holders(t.Context(), program.Export); !known || len(holders) != 0 {
		t.Errorf("after: %v, known %t", holders, known)
	}
	if _, known := bindings.Holders(t.Context(), v1alpha1.ExportKey{Cluster: program.Export.Cluster, Name: "others.example.org"}); known {
		t.Error("holders of an export that is not followed are taken for known")
	}
}
