package apiserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"go.opendefense.cloud/krop/pkg/budget"
)

const (
	// smallBody is up to what size a body needs no room of its own: as much as its connection takes anyway, and
	// more than most instances have.
	smallBody = 16 << 10
	// How long it is waited until a body may arrive, and until a large one may go on. Together they are as long as
	// the wait for a place, so that all of it is within the time that a parent gives its child's write.
	longestArrivalWait = 2 * time.Second
	longestLargeWait   = longestWriteWait - longestArrivalWait
)

// arrivals is where bodies are received, before their requests take places: a client that sends slowly holds
// nothing that others need. Each level has its own, or else a parent that waits for a place could keep its large body
// where that of a child has to go, whose parent has the place.
type arrivals struct {
	limits budget.Limits
	all    *rooms
	large  *rooms // until the request has a place
}

func newArrivals(limits budget.Limits, halvings int) *arrivals {
	return &arrivals{
		limits: limits,
		all:    newRooms(limits, budget.Bodies, budget.BodiesPerConsumer, halvings),
		large:  newRooms(limits, budget.LargeBodies, budget.LargeBodiesPerConsumer, halvings),
	}
}

// receive has a body read as a whole, if there is one. Its room has to be released, once.
func (a *arrivals) receive(body *arrival, sender string) (release func(), refusal *apierrors.StatusError) {
	if body == nil {
		return func() {}, nil
	}
	if release, refusal = a.read(body, sender); refusal != nil {
		body.abandon()
		return nil, refusal
	}
	return sync.OnceFunc(release), nil
}

func (a *arrivals) read(body *arrival, sender string) (release func(), refusal *apierrors.StatusError) {
	most := a.limits.Of(budget.RequestBytes)
	if body.announced > int64(most) {
		return nil, a.tooLarge()
	}
	leave, refusal := a.all.enter(body.ctx, sender, longestArrivalWait)
	if refusal != nil {
		return nil, refusal
	}
	defer leave()
	left := time.Duration(a.limits.Of(budget.BodySeconds)) * time.Second
	began := time.Now()
	if err := body.receive(smallBody+1, left); err != nil {
		return nil, a.failed(err)
	}
	if body.whole {
		return func() {}, nil
	}
	left -= time.Since(began) // and not what it waits for others
	return a.readLarge(body, sender, most, left)
}

func (a *arrivals) readLarge(body *arrival, sender string, most int, left time.Duration) (func(), *apierrors.StatusError) {
	release, refusal := a.large.enter(body.ctx, sender, longestLargeWait)
	if refusal != nil {
		return nil, refusal
	}
	body.reserve(most)
	err := body.receive(most+1, left)
	switch {
	case err != nil:
		refusal = a.failed(err)
	case !body.whole:
		refusal = a.tooLarge()
	default:
		return release, nil
	}
	release()
	return nil, refusal
}

func (a *arrivals) tooLarge() *apierrors.StatusError {
	return apierrors.NewRequestEntityTooLargeError(a.limits.More(budget.RequestBytes).Error())
}

func (a *arrivals) failed(err error) *apierrors.StatusError {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return status(http.StatusRequestTimeout, metav1.StatusReasonTimeout, a.limits.More(budget.BodySeconds).Error())
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the body of the request can't be read: %v", err))
}

// senderOf names whose bodies are counted together. Only of what a shard passes on is it known that the
// workspace lets its sender write there; others could take away the room of any workspace that they name.
func senderOf(found *route, who user.Info) string {
	if callerOf(who).isShard() {
		return "cluster " + found.cluster.String()
	}
	return "user " + who.GetName()
}

// rooms is a number of places of which each sender may have a share.
type rooms struct {
	limits       budget.Limits
	all, each    *budget.Turns
	bound, share *budget.Bound
}

func newRooms(limits budget.Limits, bound, share *budget.Bound, halvings int) *rooms {
	all, each := halved(limits.Of(bound), halvings), halved(limits.Of(share), halvings)
	const waiting = handSize * queueLength // as many as could wait for a turn
	return &rooms{
		limits: limits, bound: bound, share: share,
		all:  budget.NewTurns(all, all, waiting),
		each: budget.NewTurns(math.MaxInt, each, waiting),
	}
}

// enter waits for a place, which has to be left once.
func (r *rooms) enter(ctx context.Context, sender string, longest time.Duration) (leave func(), refusal *apierrors.StatusError) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	leaveShare, err := r.each.Enter(ctx, sender)
	if err != nil {
		return nil, tooMany(r.limits.Exceeded(r.share, waited).Error())
	}
	leaveAll, err := r.all.Enter(ctx, sender)
	if err != nil {
		leaveShare()
		return nil, tooMany(r.limits.Exceeded(r.bound, waited).Error())
	}
	return func() { leaveAll(); leaveShare() }, nil
}
