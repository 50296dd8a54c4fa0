package gc

import "go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"

// Again has every instance of an export looked at: what kept some of them from being composed may be over, without an
// event that says whose.
func (l *Loop) Again(export v1alpha1.ExportKey) {
	if kind := l.kind(export); kind != nil {
		kind.enqueueAll(routine, func(v1alpha1.InstanceKey) bool { return true })
	}
}
