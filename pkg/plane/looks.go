package plane

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
)

// untilLook is how long to wait before it is looked again where an export is. Once looks have become rare, all that are
// for one export come at one time, whatever they are to find: one question to kcp answers them. Of hundreds of exports
// that nobody has bound, each with a handful of kinds, the questions would add up.
func untilLook(retry *wait.Backoff, export v1alpha1.ExportKey) time.Duration {
	if retry.Steps > 0 {
		return retry.Step()
	}
	return untilMoment(export, time.Now())
}

// untilMoment is the time until the next of an export's moments, which are watchRetryMost apart and differ between exports.
func untilMoment(export v1alpha1.ExportKey, now time.Time) time.Duration {
	hash := fnv.New32a()
	hash.Write([]byte(export.String()))
	since := now.UnixNano() + int64(hash.Sum32())%int64(watchRetryMost)
	return watchRetryMost - time.Duration(since%int64(watchRetryMost))
}
