package etcd

import (
	"context"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// The suites of k8s.io/apiserver/pkg/storage/testing, run on krop's keys, transformer, cache and
// delegator: "etcd" is without the cache, "cache" is what a store is given. These are not run:
//
//	suite                              where   why
//	Stats                              both    sizes are compared with objects that lack kcp.io/cluster, and counts
//	                                           include the neighbouring cluster that every suite here has
//	WatchWithUnsafeDelete              both    krop leaves the gate AllowUnsafeMalformedObjectDeletion off
//	OptionalTestProgressNotify         both    it needs an etcd that reports progress unasked every second
//	KeySchema                          cache   its objects have no names, so the cache can't file them; TestKeys* have ours
//	List on a first list that fails    cache   upstream injects that between etcd and cache, where krop has no seam
//	ListInconsistentContinuation,      cache   upstream doesn't run these on the cache either: they exchange the
//	ListResourceVersionMatch,                  transformer or compact while the cache reads
//	GuaranteedUpdate,
//	GuaranteedUpdateChecksStoredData,
//	TransformationFailure, WatchError,
//	WatchErrorIsBlockingFurtherEvents,
//	WatchContextCancel
//	WatchFromZero                      cache   upstream compacts the cache from inside; TestCompactedVersionsAreGone of
//	                                           pkg/registry/kind does it by a restart
//	WatcherTimeout                     etcd    only the cache has time limits
//	WatchDispatchBookmarkEvents,       both    they fail unless all of it happens within 3 s, which a busy machine doesn't
//	WatchBookmarksWithCorrect-                 promise; TestWatchesResumeAndBookmark of pkg/registry/kind waits
//	ResourceVersion
//	Benchmark*                         both    not tests
//
// The continuation suites can also count reads of etcd; that checks upstream's paging, not ours, and is left out.
type suiteRun struct {
	name string
	run  func(ctx context.Context, t *testing.T, s *suite)
	// only is "etcd" or "cache" for suites that make sense on one of them, "" for both.
	only string
	// clusterScoped is for suites whose objects have no namespace.
	clusterScoped bool
	// fresh is for suites that need the history of etcd from its beginning, and for those that leave objects behind
	// that etcd deletes later: others expect that nobody else writes.
	fresh bool
}

func TestUpstreamSuites(t *testing.T) {
	for _, test := range append(storeSuites, watchSuites...) {
		for where, cached := range map[string]bool{"etcd": false, "cache": true} {
			if test.only != "" && test.only != where {
				continue
			}
			t.Run(test.name+"/"+where, func(t *testing.T) {
				backend := shared
				if test.fresh {
					embedded, own := startEmbedded(t, t.TempDir())
					t.Cleanup(embedded.Stop)
					t.Cleanup(own.Close)
					backend = own
				}
				test.run(context.Background(), t, newSuite(t, backend, !test.clusterScoped, cached))
			})
		}
	}
}

// on runs a suite that needs nothing but storage.
func on(suiteFunc func(context.Context, *testing.T, storage.Interface)) func(context.Context, *testing.T, *suite) {
	return func(ctx context.Context, t *testing.T, s *suite) { suiteFunc(ctx, t, s) }
}

func ignoreCalls(*testing.T, uint64, uint64) {}

var storeSuites = []suiteRun{
	{name: "Create", run: func(ctx context.Context, t *testing.T, s *suite) { storagetesting.RunTestCreate(ctx, t, s, s.validate) }},
	{name: "CreateWithTTL", fresh: true, run: on(storagetesting.RunTestCreateWithTTL)},
	{name: "CreateWithKeyExist", run: on(storagetesting.RunTestCreateWithKeyExist)},
	{name: "Get", run: on(storagetesting.RunTestGet)},
	{name: "UnconditionalDelete", run: on(storagetesting.RunTestUnconditionalDelete)},
	{name: "ConditionalDelete", run: on(storagetesting.RunTestConditionalDelete)},
	{name: "DeleteWithSuggestion", run: on(storagetesting.RunTestDeleteWithSuggestion)},
	{name: "DeleteWithSuggestionAndConflict", run: on(storagetesting.RunTestDeleteWithSuggestionAndConflict)},
	{name: "DeleteWithConflict", run: on(storagetesting.RunTestDeleteWithConflict)},
	{name: "DeleteWithSuggestionOfDeletedObject", run: on(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject)},
	{name: "ValidateDeletionWithSuggestion", run: on(storagetesting.RunTestValidateDeletionWithSuggestion)},
	{name: "ValidateDeletionWithOnlySuggestionValid", run: on(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid)},
	{name: "PreconditionalDeleteWithSuggestion", run: on(storagetesting.RunTestPreconditionalDeleteWithSuggestion)},
	{name: "PreconditionalDeleteWithOnlySuggestionPass", run: on(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass)},
	{name: "List", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestList(ctx, t, s, s.compact, false, s.recorder)
	}},
	{name: "List", only: "cache", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestList(ctx, t, s, s.compact, true, s.recorder)
	}},
	{name: "ConsistentList", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestConsistentList(ctx, t, s, s.increaseRV, false, true, false)
	}},
	{name: "ConsistentList", only: "cache", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestConsistentList(ctx, t, s, s.increaseRV, true, true, true)
	}},
	{name: "GetListNonRecursive", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, s.increaseRV, s)
	}},
	{name: "GetListRecursivePrefix", run: on(storagetesting.RunTestGetListRecursivePrefix)},
	{name: "ListContinuation", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestListContinuation(ctx, t, s, ignoreCalls)
	}},
	{name: "ListPaginationRareObject", clusterScoped: true, run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, s, ignoreCalls)
	}},
	{name: "ListContinuationWithFilter", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, s, ignoreCalls)
	}},
	{name: "ListInconsistentContinuation", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, s, s.compact)
	}},
	{name: "ListResourceVersionMatch", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, s)
	}},
	{name: "ListPaging", run: on(storagetesting.RunTestListPaging)},
	{name: "NamespaceScopedList", run: on(storagetesting.RunTestNamespaceScopedList)},
	{name: "GuaranteedUpdate", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, s, s.validate)
	}},
	{name: "GuaranteedUpdateWithTTL", fresh: true, run: on(storagetesting.RunTestGuaranteedUpdateWithTTL)},
	{name: "GuaranteedUpdateChecksStoredData", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, s)
	}},
	{name: "GuaranteedUpdateWithConflict", run: on(storagetesting.RunTestGuaranteedUpdateWithConflict)},
	{name: "GuaranteedUpdateWithSuggestionAndConflict", run: on(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict)},
	{name: "TransformationFailure", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestTransformationFailure(ctx, t, s)
	}},
	{name: "CompactRevision", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestCompactRevision(ctx, t, s, s.increaseRV, s.compact)
	}},
	{name: "KeySchema", only: "etcd", run: on(storagetesting.RunTestKeySchema)},
}

var watchSuites = []suiteRun{
	{name: "Watch", run: on(storagetesting.RunTestWatch)},
	{name: "WatchFromZero", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunTestWatchFromZero(ctx, t, s, s.compact)
	}},
	{name: "DeleteTriggerWatch", run: on(storagetesting.RunTestDeleteTriggerWatch)},
	{name: "WatchFromNonZero", run: on(storagetesting.RunTestWatchFromNonZero)},
	{name: "DelayedWatchDelivery", run: on(storagetesting.RunTestDelayedWatchDelivery)},
	{name: "WatchError", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) { storagetesting.RunTestWatchError(ctx, t, s) }},
	{name: "WatchErrorIsBlockingFurtherEvents", only: "etcd", run: func(ctx context.Context, t *testing.T, s *suite) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, s)
	}},
	{name: "WatchContextCancel", only: "etcd", run: on(storagetesting.RunTestWatchContextCancel)},
	{name: "WatcherTimeout", only: "cache", run: on(storagetesting.RunTestWatcherTimeout)},
	{name: "WatchDeleteEventObjectHaveLatestRV", run: on(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV)},
	{name: "WatchInitializationSignal", run: on(storagetesting.RunTestWatchInitializationSignal)},
	{name: "ClusterScopedWatch", clusterScoped: true, run: on(storagetesting.RunTestClusterScopedWatch)},
	{name: "NamespaceScopedWatch", run: on(storagetesting.RunTestNamespaceScopedWatch)},
	{name: "SendInitialEventsBackwardCompatibility", run: on(storagetesting.RunSendInitialEventsBackwardCompatibility)},
	{name: "WatchSemantics", fresh: true, run: observed(storagetesting.RunWatchSemantics)},
	{name: "WatchSemanticInitialEventsExtended", run: observed(storagetesting.RunWatchSemanticInitialEventsExtended)},
	{name: "WatchListMatchSingle", run: observed(storagetesting.RunWatchListMatchSingle)},
}

// observed is on for suites that expect the cache to know what was created once Create returns.
func observed(suiteFunc func(context.Context, *testing.T, storage.Interface)) func(context.Context, *testing.T, *suite) {
	return func(ctx context.Context, t *testing.T, s *suite) { suiteFunc(ctx, t, &observedStorage{s, t}) }
}

type observedStorage struct {
	*suite
	t *testing.T
}

func (s *observedStorage) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if err := s.suite.Create(ctx, key, obj, out, ttl); err != nil {
		return err
	}
	waitFor(s.t, func() bool {
		cached := &example.Pod{}
		err := s.Get(ctx, key, storage.GetOptions{ResourceVersion: "0"}, cached)
		return err == nil && apiequality.Semantic.DeepEqual(cached, out)
	})
	return nil
}
