package apiserver

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/eventclock"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset"
	"k8s.io/apiserver/pkg/util/flowcontrol/metrics"
	flowrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"go.opendefense.cloud/krop/pkg/apis/krop/v1alpha1"
	"go.opendefense.cloud/krop/pkg/budget"
)

const (
	// queues per level. A flow is dealt handSize of them and takes the shortest: with 128 and 6, ten
	// flooding clusters leave another one without a free queue in well under one case of a thousand.
	queues   = 128
	handSize = 6
	// queueLength bounds what waits: a cluster can hold handSize*queueLength requests, each of which
	// is only a goroutine. More are answered with 429.
	queueLength = 50
	// widestShare of a level is what one expensive list may take at most.
	widestShare = 0.15
	// longestWriteWait is how long a write waits for its turn. It may be that of a child that is an instance itself:
	// the wait ends, with 429, soon enough for the parent's call (15 s) to try once more, and for the parent to
	// answer in time. That such children get a turn at all is what lanes are for.
	longestWriteWait = 6 * time.Second

	levelReads  = "reads"
	levelWrites = "writes"
	// levelServer is what isn't limited since it does no I/O: probes, metrics, and what a shard asks across
	// all clusters about a kind. kcp does that on every discovery of every client.
	levelServer = "server"
)

// fairness limits what runs at one time, and when there is more, gives every consumer's logical
// cluster its turn. It stands in for API priority and fairness, which can't be used: kcp serves no
// flow-control API, and all traffic comes as one user. The queues, and the filter that calls this, are
// those of k8s.io/apiserver. Reads and writes have a level each, so that writes waiting for other
// API servers don't keep readers out.
type fairness struct {
	limits        budget.Limits
	reads, server *level
	writes        lanes
	height        func(v1alpha1.ExportKey) int // of an export's kind; nil before it is known
}

// level is a limit, and the queues before it.
type level struct {
	set      fq.QueueSet // nil: not limited
	limit    int
	longest  time.Duration // to wait for a turn; zero: as long as the library lets requests wait
	bound    *budget.Bound // of limit
	shares   *budget.Turns // what one cluster may have of the limit
	share    *budget.Bound // of shares
	arrivals *arrivals     // of bodies, before there is a turn
	schema   *flowcontrolv1.FlowSchema
	priority *flowcontrolv1.PriorityLevelConfiguration
}

var _ flowcontrol.Interface = &fairness{}

func newFairness(limits budget.Limits) (*fairness, error) {
	metrics.Register()
	factory := queueset.NewQueueSetFactory(eventclock.Real{})
	fair := &fairness{limits: limits, server: newLevel(levelServer, 0)}
	var err error
	if fair.reads, err = newQueuedLevel(factory, levelReads, limits.Of(budget.Reads)); err != nil {
		return nil, err
	}
	fair.reads.shared(limits, budget.Reads, budget.ReadsPerConsumer, 0)
	if fair.writes, err = newLanes(factory, limits); err != nil {
		return nil, err
	}
	return fair, nil
}

func newLevel(name string, limit int) *level {
	meta := metav1.ObjectMeta{Name: name}
	return &level{
		limit:    limit,
		schema:   &flowcontrolv1.FlowSchema{ObjectMeta: meta},
		priority: &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: meta},
	}
}

func newQueuedLevel(factory fq.QueueSetFactory, name string, limit int) (*level, error) {
	labels := []string{name}
	construction, err := factory.BeginConstruction(
		fq.QueuingConfig{Name: name, DesiredNumQueues: queues, QueueLengthLimit: queueLength, HandSize: handSize},
		metrics.RatioedGaugeVecPhasedElementPair(metrics.PriorityLevelConcurrencyGaugeVec, 1, 1, labels),
		metrics.PriorityLevelExecutionSeatsGaugeVec.NewForLabelValuesSafe(0, 1, labels),
		metrics.ApiserverSeatDemands.NewForLabelValuesSafe(0, 1, labels))
	if err != nil {
		return nil, fmt.Errorf("queues for %s: %w", name, err)
	}
	queued := newLevel(name, limit)
	queued.set = construction.Complete(fq.DispatchingConfig{ConcurrencyLimit: limit, ConcurrencyDenominator: limit})
	return queued, nil
}

// Handle implements flowcontrol.Interface: it runs execute now, or when it is the cluster's turn, or not at all.
func (f *fairness) Handle(
	ctx context.Context,
	digest flowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	estimate func() flowrequest.WorkEstimate,
	queued fq.QueueNoteFn,
	execute func(),
) {
	found := routeFrom(ctx)
	at := f.levelOf(found, digest.RequestInfo)
	flow := found.cluster.String()
	note(at.schema, at.priority, flow)
	if at.set == nil {
		execute()
		return
	}
	release, refusal := at.arrivals.receive(found.body, senderOf(found, digest.User))
	if refusal != nil {
		found.refuse(refusal)
		execute()
		return
	}
	defer release()
	ctx, cancel := at.waiting(ctx, found.body) // of the wait only: execute has a context of its own
	defer cancel()
	if !found.wildcard() {
		leave, err := at.shares.Enter(ctx, flow)
		if err != nil {
			found.refuse(tooMany(f.limits.Exceeded(at.share, waited).Error()))
			execute()
			return
		}
		defer leave()
	}
	work := estimate()
	turn, _ := at.set.StartRequest(ctx, &work, flowHash(flow), flow, at.schema.Name, "", "", queued)
	if turn == nil {
		found.refuse(tooMany(f.limits.Exceeded(at.bound, waited).Error()))
		execute() // which only says so
		return
	}
	turn.Finish(func() {
		metrics.AddDispatch(ctx, at.priority.Name, at.schema.Name)
		queueset.OnRequestDispatched(turn)
		release() // of what has a place there is no more than there are places
		execute()
	})
}

// waiting is the context in which a request waits for its turn. The time in which its body has arrived isn't part of it.
func (l *level) waiting(ctx context.Context, body *arrival) (context.Context, context.CancelFunc) {
	if l.longest == 0 {
		return ctx, func() {}
	}
	if body == nil {
		return context.WithTimeout(ctx, l.longest)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.longest)
	forget := context.AfterFunc(body.ctx, cancel)
	return ctx, func() { forget(); cancel() }
}

func (f *fairness) levelOf(found *route, info *request.RequestInfo) *level {
	switch {
	case found.surface != surfaceExport:
		return f.server
	case !info.IsResourceRequest && found.wildcard():
		return f.server
	case !info.IsResourceRequest: // documents: that the cluster is bound, and a user may ask, can take requests to kcp
		return f.reads
	}
	switch info.Verb {
	case "get", "list", "watch":
		return f.reads
	default:
		return f.laneOf(found.export)
	}
}

func flowHash(flow string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(flow))
	return hash.Sum64()
}

// Run implements flowcontrol.Interface. There is no configuration to follow.
func (f *fairness) Run(stop <-chan struct{}) error {
	<-stop
	return nil
}

// Install implements flowcontrol.Interface. The debugging endpoints would show clusters and users.
func (f *fairness) Install(*mux.PathRecorderMux) {}

// RegisterWatch implements flowcontrol.WatchTracker. Watches aren't counted: the library counts them by
// kind, so that the watchers of one consumer would make the writes of another look expensive.
func (f *fairness) RegisterWatch(*http.Request) flowcontrol.ForgetWatchFunc { return nil }

// GetInterestedWatchCount implements flowcontrol.WatchTracker.
func (f *fairness) GetInterestedWatchCount(*request.RequestInfo) int { return 0 }

// GetMaxSeats implements flowcontrol.MaxSeatsTracker.
func (f *fairness) GetMaxSeats(name string) uint64 {
	for _, at := range append(lanes{f.reads}, f.writes...) {
		if at.priority.Name == name {
			return max(1, uint64(float64(at.limit)*widestShare))
		}
	}
	return 1
}

// SetMaxSeats implements flowcontrol.MaxSeatsTracker. The limits are fixed.
func (f *fairness) SetMaxSeats(string, uint64) {}

// ForgetPriorityLevel implements flowcontrol.MaxSeatsTracker. The levels are fixed.
func (f *fairness) ForgetPriorityLevel(string) {}
