package apiserver

import (
	"strings"
	"sync"

	compbasemetrics "k8s.io/component-base/metrics"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/registry"
)

// Labels that stand for all kinds of all providers, so that the number of time series grows with
// neither providers nor consumers.
const (
	instancesLabel  = "instances"
	blueprintsLabel = "resourcegraphdefinitions"
)

type metricLabels struct{ group, version, resource string }

func metricLabelsFor(served *registry.Served) metricLabels {
	if served.Program == nil {
		gvr := served.Kind.GVR()
		return metricLabels{group: gvr.Group, version: gvr.Version, resource: blueprintsLabel}
	}
	return metricLabels{group: v1alpha1.GroupVersion.Group, version: v1alpha1.GroupVersion.Version, resource: instancesLabel}
}

// sumsByKind are the metrics of k8s.io/apiserver with a label that would hold a group, a version, a
// resource or a subresource, from a request's path or from a stored kind, and that add up over kinds.
var sumsByKind = []string{
	"apiserver_cache_list_fetched_objects_total",
	"apiserver_cache_list_returned_objects_total",
	"apiserver_cache_list_total",
	"apiserver_init_events_total",
	"apiserver_longrunning_requests",
	"apiserver_request_aborts_total",
	"apiserver_request_body_size_bytes",
	"apiserver_request_duration_seconds",
	"apiserver_request_sli_duration_seconds",
	"apiserver_request_slo_duration_seconds",
	"apiserver_request_terminations_total",
	"apiserver_request_total",
	"apiserver_requested_deprecated_apis",
	"apiserver_response_sizes",
	"apiserver_selfrequest_total",
	"apiserver_storage_consistency_checks_total",
	"apiserver_storage_decode_errors_total",
	"apiserver_storage_events_received_total",
	"apiserver_storage_list_evaluated_objects_total",
	"apiserver_storage_list_fetched_objects_total",
	"apiserver_storage_list_returned_objects_total",
	"apiserver_storage_list_total",
	"apiserver_terminated_watchers_total",
	"apiserver_watch_cache_consistent_read_total",
	"apiserver_watch_cache_events_dispatched_total",
	"apiserver_watch_cache_events_received_total",
	"apiserver_watch_cache_initializations_total",
	"apiserver_watch_cache_read_wait_seconds",
	"apiserver_watch_events_sizes",
	"apiserver_watch_events_total",
	"apiserver_watch_filtered_events_total",
	"apiserver_watch_list_duration_seconds",
	"etcd_bookmark_total",
	"etcd_request_duration_seconds",
	"etcd_request_errors_total",
	"etcd_requests_total",
	"watch_cache_capacity_decrease_total",
	"watch_cache_capacity_increase_total",
}

// gaugesByKind say something about one kind each. Summed up they would say nothing, so they aren't kept.
var gaugesByKind = []string{
	"apiserver_resource_objects",
	"apiserver_resource_size_estimate_bytes",
	"apiserver_storage_objects",
	"apiserver_watch_cache_resource_version",
	"apiserver_watch_shards_total",
	"etcd_bookmark_counts",
	"watch_cache_capacity",
}

var boundOnce sync.Once

// boundMetrics makes the library count every other value of those labels as "unexpected". It works for
// metrics that were not used yet, and for the whole process.
func boundMetrics() {
	boundOnce.Do(func() {
		allowed := map[string]string{
			"group":       "," + v1alpha1.GroupVersion.Group,
			"version":     "," + v1alpha1.GroupVersion.Version,
			"resource":    strings.Join([]string{"", instancesLabel, blueprintsLabel}, ","),
			"subresource": "," + statusSubresource,
		}
		lists := map[string]string{}
		for _, metric := range sumsByKind {
			for label, values := range allowed {
				lists[metric+","+label] = values
			}
		}
		compbasemetrics.SetLabelAllowList(lists)
		compbasemetrics.SetDisabledMetrics(gaugesByKind)
	})
}
