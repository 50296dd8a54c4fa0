package plane

import (
	"testing"
	"time"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

func TestLooksForOneExportComeAtOneTime(t *testing.T) {
	one, other := v1alpha1.ExportKey{Cluster: "a", Name: "one"}, v1alpha1.ExportKey{Cluster: "a", Name: "other"}
	now := time.Now()
	moment := now.Add(untilMoment(one, now))
	for _, before := range []time.Duration{1, time.Millisecond, watchRetryMost / 2, watchRetryMost - 1} {
		if again := moment.Add(-before); !again.Add(untilMoment(one, again)).Equal(moment) {
			t.Errorf("%s before, the next look is after %s", before, untilMoment(one, again))
		}
	}
	if next := untilMoment(one, moment); next != watchRetryMost {
		t.Errorf("at the moment itself the next look is after %s", next)
	}
	if untilMoment(one, now) == untilMoment(other, now) {
		t.Error("looks for two exports come at one time")
	}
}

func TestLooksAreOftenAtFirst(t *testing.T) {
	retry, waited := watchRetry(), time.Duration(0)
	for retry.Steps > 0 {
		wait := untilLook(retry, v1alpha1.ExportKey{})
		if wait < watchRetryFirst || wait > 2*watchRetryMost {
			t.Errorf("a look after %s", wait)
		}
		waited += wait
	}
	if wait := untilLook(retry, v1alpha1.ExportKey{}); wait <= 0 || wait > watchRetryMost {
		t.Errorf("after %s, the next look is after %s", waited, wait)
	}
}
