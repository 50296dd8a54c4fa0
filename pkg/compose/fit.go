package compose

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
	"go.opendefense.cloud/krop/pkg/engine"
)

// fit leaves the author's fields out of a status that is too large to be stored, and the messages out of the rows: what
// remains is what krop needs to find the children, and conditions that say why. A status that could not be stored at all
// would stay what it was, and be wrong.
// earlier is the conditions before: what is said again keeps its time.
func (c *Composer) fit(instance *unstructured.Unstructured, s status, earlier any) error {
	over := checkStored(instance)
	if over == nil {
		return nil
	}
	if s.short {
		return over
	}
	s.short, s.plan, s.partial = true, nil, false
	rows := make([]v1alpha1.ComposedResource, len(s.rows))
	for i, row := range s.rows {
		row.Message, row.WaitingFor = "", ""
		rows[i] = row
	}
	s.rows, s.author, s.complete = rows, nil, true
	s.health = engine.Summarize(nil, rows, fmt.Errorf("fields of status are left out: %w", over))
	instance.Object["status"] = map[string]any{}
	if earlier != nil {
		instance.Object["status"] = map[string]any{"conditions": earlier}
	}
	return c.setStatus(instance, s)
}

// checkStored fails with *budget.Over if an object is too large for etcd. Who owns which field of status is recorded
// only as far as there is room.
func checkStored(instance *unstructured.Unstructured) error {
	return budget.Limits{}.Check(budget.StoredBytes, engine.JSONSize(instance.Object))
}
