package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/recipes"
	"github.com/succession-dev/succession/recipes/internal/recipe"
)

// most is the largest number of participants: they are listed in one record, with up to 36 bytes
// each.
const most = 5000

// A Barrier is a process's handle on a barrier that n participants pass together. It is safe for
// concurrent use. Each call of Wait is a participant of its own.
type Barrier struct {
	b    backend.Backend
	name string
	n    int
	o    elect.Options
}

// New returns a handle on the barrier with the given name on b, for n participants. It does not
// block and does not talk to the coordinator. o says who this process is to others who look at the
// line, and has the margin and the log; nil means the defaults. Ready, Priority, Site and History
// must be left out. The caller still has to close b.
//
// If the name or an option is not allowed, or n is less than 1 or more than 5000, every call
// fails with [backend.ErrInvalid]. Where the backend has no shared members, or no records, every
// call fails with [errors.ErrUnsupported].
//
// All participants must give the same n. If a call finds another number in front of it, it fails
// with [backend.ErrInvalid], and the error says both numbers. The number may change as soon as
// nobody stands in line.
//
// The barrier uses the names NAME-arrivals and NAME-open: choose a NAME for which nothing else uses
// these.
func New(b backend.Backend, name string, n int, o *elect.Options) *Barrier {
	return &Barrier{b: b, name: name, n: n, o: *aBarrier.Options(name, o)}
}

var aBarrier = recipe.Recipe{Package: "barrier", Owner: naming.Barrier}

// Name returns the barrier's name.
func (b *Barrier) Name() string { return b.name }

// line is where the participants stand, and record says for whom the barrier has opened.
func (b *Barrier) line() string   { return b.name + naming.Arrivals }
func (b *Barrier) record() string { return b.name + naming.Open }

// Wait blocks until n participants are present, this call among them. Then it leaves the line and
// returns nil, so the next call waits for the next round.
//
// No barrier opens while an operator has paused its line, NAME-arrivals: Wait waits.
//
// If the session ends before the barrier has opened, Wait joins the line again, at the end. If the
// barrier had already opened with this call, Wait finds that out and returns nil. While the
// coordinator cannot be reached, Wait waits. If hundreds have passed the barrier by the time it is
// back, nobody knows whether this call was one of them, and Wait fails with [elect.ErrLost].
//
// If ctx ends first, Wait leaves the line, within [elect.Options] ResignTimeout, and returns the
// cause of ctx. If the barrier opens at that moment, the others may have counted this call. Wait
// also returns other errors, such as [backend.ErrDenied] or [backend.ErrSealed].
func (b *Barrier) Wait(ctx context.Context) error {
	in, err := b.enter(ctx)
	if errors.Is(err, errCounted) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = in.Term().Resign(ctx) // if that fails, a goroutine tries on; a counted member holds up nobody
	return nil
}

// enter blocks until the barrier has opened for one more participant. It fails with errCounted if
// this call was counted, but lost its member before it knew.
func (b *Barrier) enter(ctx context.Context) (*Inside, error) {
	if err := aBarrier.Check(b.name, &b.o); err != nil {
		return nil, err
	}
	if b.n < 1 || b.n > most {
		return nil, fmt.Errorf("barrier: %w number of participants of %s: %d, from 1 to %d are possible", backend.ErrInvalid, b.name, b.n, most)
	}
	p := &participant{b: b, part: part{n: b.n, id: strings.ToLower(rand.Text()[:12])}} // 60 random bits
	o := b.o
	o.Value = strings.TrimSuffix(p.String()+"\n"+o.Value, "\n")
	e := elect.New(view.Of(b.b, p.session), b.line(), &o)
	longest := len(e.ID()) + len("\n") + len(o.Value) + len(fmt.Sprintf(since, uint64(math.MaxUint64)))
	if longest > backend.MaxValue { // said now, and not after a lost session
		return nil, fmt.Errorf("barrier: %w ID and Value of %s: they take up to %d bytes with what the barrier adds, and %d are possible", backend.ErrInvalid, b.name, longest, backend.MaxValue)
	}
	t, err := e.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	return &Inside{Hold: recipes.NewHold(t), b: b.b, round: p.round}, nil
}
