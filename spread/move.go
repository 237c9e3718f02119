package spread

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/record"
)

// ErrRefused says that an election cannot be moved, or put on a cluster, as things are.
var ErrRefused = migrate.ErrRefused

// Put gives the election its home, if it has none yet. It is for an election that has been in use on
// one cluster alone: put it there before any process uses it through this package. Put fails with
// [ErrRefused] if the election has another home. It blocks for a few round trips.
func (b *Backend) Put(ctx context.Context, election, at string) (err error) {
	defer func() { err = wrap("put", election, err) }()
	keeper, err := b.keeper(ctx, election, true)
	if err != nil {
		return err
	}
	if _, err := b.use(ctx, at); err != nil {
		return err
	}
	v := homeOf(keeper, election)
	_, err = v.CompareAndSet(ctx, backend.Absent, Home{At: at})
	if !errors.Is(err, backend.ErrVersion) {
		return err
	}
	e, err := v.Get(ctx)
	if err == nil && (e.Value.At != at || e.Value.To != "") {
		err = fmt.Errorf("%w: it lives on %s; move it", ErrRefused, e.Value.At)
	}
	return err
}

// MoveOptions say what becomes of records of which nobody knows whether they go with the election:
// those that stand beside it, such as NAME-position, and that no leader has written through its term
// while it used this package. Nil and the zero value mean that Move and Finish fail with [ErrRefused] if
// there are any, and name them. Where records cannot be listed, as at the top level of a cluster, only
// NAME-position is found.
type MoveOptions struct {
	// Carry names records that also go with the election. Each must be there.
	Carry []string
	// Leave lets the others stay on the old cluster, and also those that could not be carried over.
	Leave bool
}

// Move moves the election to the cluster with that name, as package migrate does, without a restart
// of any process: candidates that wait in line join again, on both clusters. If the leader's
// process does not know of the move, Move asks it to resign once the others know; so its program
// must campaign again, as Run does. The next leader's term then goes on over the move. If nobody
// stands in line, Move itself stands there for a moment.
//
// Move blocks until the election has moved, or ctx ends. It fails with [ErrRefused] if the election is
// being moved to another cluster, if anybody stands in its line on the new one, or as [MoveOptions] say;
// o may be nil. Whenever Move fails, the move may be under way: call Move again, or [Backend.Abort]. When
// it has returned without an error, both clusters are still in use: call [Backend.Finish].
func (b *Backend) Move(ctx context.Context, election, to string, o *MoveOptions) (err error) {
	defer func() { err = wrap("move", election, err) }()
	ctx, end, err := b.step(ctx)
	if err != nil {
		return err
	}
	defer end()
	keeper, err := b.keeper(ctx, election, true)
	if err != nil {
		return err
	}
	err = b.makeMove(ctx, keeper, election, to, o)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w; the move may be under way: move it again, or abort", err)
	}
	return err
}

// makeMove is Move, with the cluster that keeps the home.
func (b *Backend) makeMove(ctx context.Context, keeper *cluster, election, to string, o *MoveOptions) error {
	e, err := b.plan(ctx, keeper, election, to)
	if err != nil || e.Value.To == "" {
		return err
	}
	m, err := b.operator(ctx, e.Value, o)
	if err != nil {
		return err
	}
	defer m.Close()
	h, err := b.announce(ctx, keeper, election, e, m)
	if err != nil || h.To == "" {
		return err
	}
	if err := ring(ctx, keeper, election); err != nil {
		return err
	}
	return b.cutover(ctx, election, h, m)
}

// plan writes down that the election is about to move, so that [Backend.Abort] knows of a gate that
// an interrupted move has left behind. It returns the record of its home, in which To is empty if the
// election lives there.
func (b *Backend) plan(ctx context.Context, keeper *cluster, election, to string) (e record.Entry[Home], err error) {
	err = again.Try(ctx, written, func() error {
		if e, err = b.settle(ctx, keeper, election, true); err != nil {
			return err
		}
		switch h := e.Value; {
		case h.To == "" && h.At == to, h.To == to:
			return nil
		case h.To != "":
			return fmt.Errorf("%w: it is being moved from %s to %s; finish or abort that", ErrRefused, h.At, h.To)
		}
		from, err := b.use(ctx, e.Value.At)
		if err != nil {
			return err
		}
		c, err := b.use(ctx, to)
		if err != nil {
			return err
		}
		e.Value = Home{At: e.Value.At, To: to, Planned: true, AtURL: coordinator.Redact(from.URL), ToURL: coordinator.Redact(c.URL)}
		if err := b.possible(ctx, election, e.Value); err != nil {
			return err
		}
		e.Version, err = homeOf(keeper, election).CompareAndSet(ctx, e.Version, e.Value)
		return err
	})
	return e, err
}

// possible fails if package migrate refuses to move anything between the two clusters, as between two names of one. Then
// nothing could take back what a move has written, either.
func (b *Backend) possible(ctx context.Context, election string, h Home) error {
	m, err := b.operator(ctx, h, nil)
	if err != nil {
		return err
	}
	defer m.Close()
	_, err = m.Status(ctx, election)
	return err
}

// written reports whether somebody else has written at the same time.
func written(err error) bool { return errors.Is(err, backend.ErrVersion) }

// takeBackBound is how long announce goes on when its context has ended.
const takeBackBound = 5 * time.Second

// announce begins a planned move, and then writes down that candidates stand on both clusters. It returns
// the record of the home, in which To is empty if somebody else has moved the election there.
func (b *Backend) announce(ctx context.Context, keeper *cluster, election string, e record.Entry[Home], m *migrate.Backend) (h Home, err error) {
	v := homeOf(keeper, election)
	err = again.Try(ctx, written, func() error {
		h = e.Value
		err := b.begin(ctx, m, election, h)
		if err == nil {
			// The gate stands before any candidate is sent there. If an abort has begun before and has not
			// taken the gate away, this write makes it fail.
			h.Planned = false
			_, err = v.CompareAndSet(ctx, e.Version, h)
		}
		if err == nil {
			return nil
		}
		// Somebody who has taken the move back may not have seen the gate. It would stand in the way of
		// other moves, also if the caller gives up now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeBackBound)
		defer cancel()
		now, gerr := v.Get(ctx)
		if gerr != nil {
			return err
		}
		switch e = now; {
		case e.Value == Home{At: h.To}:
			h = e.Value
			return nil
		case !e.Value.same(h):
			_, aerr := b.abort(ctx, m, election, Home{Planned: true})
			return errors.Join(fmt.Errorf("%w: somebody else has taken the move back", ErrRefused), aerr)
		}
		return err // if written, somebody else moves it there, too
	})
	return h, err
}

// begin begins the move, unless the leader has made it already: an earlier call may have asked for it.
func (b *Backend) begin(ctx context.Context, m *migrate.Backend, election string, h Home) error {
	made := func() (bool, error) {
		s, err := m.Status(ctx, election)
		return s.Phase == migrate.Sealed || s.Phase == migrate.Moved, err
	}
	if yes, err := made(); yes || err != nil {
		return err
	}
	err := b.known(ctx, election, h)
	if err == nil {
		err = m.Check(ctx, election)
	}
	if err == nil {
		_, err = m.Begin(ctx, election)
	}
	if err == nil { // what would be refused later is refused before candidates are sent there
		_, err = m.Plan(ctx, migrate.Cutover, election)
	}
	if errors.Is(err, ErrRefused) {
		if yes, _ := made(); yes { // it was made since the last look
			return nil
		}
	}
	return err
}

// known writes a record of the election on the cluster where it lives, if it has none there. Without one, and with nobody in
// line, package migrate would take the two clusters for exchanged if the other one knows the election.
func (b *Backend) known(ctx context.Context, election string, h Home) error {
	at, err := b.use(ctx, h.At)
	if err != nil {
		return err
	}
	s, err := at.b.Session(ctx)
	if err != nil {
		return err
	}
	fence, err := header.Kept(ctx, s, election) // once there is a record, the copy of the fence may count no more
	if err == nil {
		_, err = s.Put(ctx, election, header.Header{Fence: fence}.Encode(), &backend.If{Version: backend.Absent})
	}
	if written(err) { // it has one
		return nil
	}
	return err
}

// A leader without a member on the new cluster does not know of the move, or only of an earlier
// one. It is asked to resign when the others have joined again, but not before soon, because they
// may not have left the line yet, or it has just become the leader and is about to join there. After
// later it is asked in any case, because candidates of other programs never join again.
const (
	soon  = 2 * time.Second
	later = 20 * time.Second
)

// cutover waits until the leader stands on both clusters, and then asks it to cut over.
func (b *Backend) cutover(ctx context.Context, election string, h Home, m *migrate.Backend) error {
	from, err := b.use(ctx, h.At)
	if err != nil {
		return err
	}
	old := operate.New(from.b, election, "a move between clusters")
	wait := backoff.New(ctx)
	var leader string   // its member
	var since time.Time // when it was first seen to lead, or asked to resign
	var blocks []string // as it was last seen
	for {
		s, err := m.Status(ctx, election)
		if err == nil {
			blocks = s.Blocks
		}
		if len(s.OnFrom) > 0 && s.OnFrom[0].Key != leader {
			leader, since = s.OnFrom[0].Key, time.Now()
		}
		switch {
		case err != nil:
		case s.Phase == migrate.Moved, s.Phase == migrate.Sealed:
			_, err = m.Cutover(ctx, election)
			return err
		case s.Ready:
			var done bool
			if done, err = follows(ctx, election, m, func(ctx context.Context) error { return gone(ctx, from.b, election, leader) }); done {
				return err
			}
		case s.Phase != migrate.Begun && s.Phase != migrate.Asked:
			return fmt.Errorf("%w: %s", ErrRefused, s.Next) // somebody has aborted it
		case len(s.OnFrom) == 0:
			err = standIn(ctx, election, m)
		case time.Since(since) > later, time.Since(since) > soon && othersKnow(s) && !waits(s):
			since = time.Now()
			_, err = old.AskToResign(ctx, &operate.ResignOptions{Token: s.OnFrom[0].Token})
		}
		if err != nil && ctx.Err() == nil && !again.Passing(err) && !errors.Is(err, elect.ErrNoLeader) && !errors.Is(err, elect.ErrNotFirst) && !errors.Is(err, operate.ErrOtherLeader) {
			return err
		}
		if err := again.After(ctx, &wait, err); err != nil {
			return fmt.Errorf("%w; it waits for this: %v", err, blocks)
		}
	}
}

// othersKnow reports whether all candidates except the leader know of the move.
func othersKnow(s migrate.Status) bool {
	return !slices.ContainsFunc(s.OnFrom[1:], func(c migrate.Candidate) bool { return c.Mode == migrate.OldOnly })
}

// follows asks the leader to cut over. It blocks until that is done, or failed, or gone returns because the leader has
// gone: the next one may not stand on both clusters.
func follows(ctx context.Context, election string, m *migrate.Backend, gone func(context.Context) error) (done bool, err error) {
	i, err := again.First(ctx,
		func(ctx context.Context) error {
			_, err := m.Cutover(ctx, election)
			return err
		}, gone)
	return i == 0, err
}

// gone blocks until the member with that key has left the line on one cluster.
func gone(ctx context.Context, on backend.Backend, election, key string) error {
	s, err := on.Session(ctx)
	if err != nil {
		return err
	}
	l, err := s.Line(ctx, election)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.Members, func(m backend.Member) bool { return m.Key == key })
	if i < 0 {
		return nil
	}
	return s.Gone(ctx, l.Members[i])
}

// waits reports whether the first on the old cluster waits on the new one for those in front of it there. That it runs with two
// clusters says less: it may know those of an earlier move.
func waits(s migrate.Status) bool {
	return slices.ContainsFunc(s.OnTo, func(c migrate.Candidate) bool { return c.Mode == migrate.Both && c.ID == s.OnFrom[0].ID })
}

// standIn leads an election that nobody stands in, for as long as the cutover takes.
func standIn(ctx context.Context, election string, m *migrate.Backend) error {
	t, err := elect.New(m, election, &elect.Options{ID: "spread-move"}).TryCampaign(ctx)
	if err != nil {
		return err
	}
	_, err = follows(ctx, election, m, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-t.Context().Done():
		}
		return nil
	})
	return errors.Join(err, t.Resign(ctx))
}

// Finish ends a move: this election then does not need the old cluster. It fails with [ErrRefused]
// if the election has not moved, as [MoveOptions] say, and as long as anybody stands in line on the old cluster: a
// candidate of this package joins the new one within a session time, and one of another program
// waits behind the seal for ever. Finish blocks for a few round trips. It is no error that it is done
// already. o may be nil; it is that of Move.
//
// Records that leaders wrote through their terms have gone along, if they used this package. Others
// stay on the old cluster, and nobody reads them there afterwards: copy them first.
func (b *Backend) Finish(ctx context.Context, election string, o *MoveOptions) (err error) {
	defer func() { err = wrap("finish", election, err) }()
	return b.settleMove(ctx, election, o, finish)
}

// Abort undoes a move that has not been completed: the election stays where it is. It fails with
// [ErrRefused] if it has moved already. It blocks until nobody stands on the new cluster, or ctx
// ends. It is no error that there is no move.
func (b *Backend) Abort(ctx context.Context, election string) (err error) {
	defer func() { err = wrap("abort", election, err) }()
	return b.settleMove(ctx, election, nil, b.abort)
}

// A lastStep takes the last step of the move that h says, and returns where the election is after it.
type lastStep func(ctx context.Context, m *migrate.Backend, election string, h Home) (Home, error)

func finish(ctx context.Context, m *migrate.Backend, election string, h Home) (Home, error) {
	_, err := m.Finish(ctx, election)
	if errors.Is(err, migrate.ErrNotBegun) { // it was planned, and nothing else
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return Home{At: h.To}, err
}

func (b *Backend) abort(ctx context.Context, m *migrate.Backend, election string, h Home) (Home, error) {
	_, err := m.Abort(ctx, election)
	if errors.Is(err, migrate.ErrNotBegun) && !h.Planned { // an empty cluster is in the place of the new one, which is lost
		if err = b.known(ctx, election, h); err == nil {
			_, err = m.Begin(ctx, election)
		}
		if err == nil {
			_, err = m.Abort(ctx, election)
		}
	}
	if err != nil && h.Planned {
		if s, serr := m.Status(ctx, election); serr == nil && (s.Phase == migrate.None || s.Phase == migrate.Elsewhere) {
			err = nil // it was planned, and nothing else: no gate of this move stands
		}
	}
	return Home{At: h.At}, err
}

// settleMove takes the last step of a move, and writes down where the election is after it.
func (b *Backend) settleMove(ctx context.Context, election string, o *MoveOptions, step lastStep) error {
	ctx, end, err := b.step(ctx)
	if err != nil {
		return err
	}
	defer end()
	keeper, err := b.keeper(ctx, election, false)
	if err != nil || keeper == nil {
		return err
	}
	err = again.Try(ctx, written, func() error { // somebody else may take a step at the same time
		e, err := homeOf(keeper, election).Get(ctx)
		if err != nil || e.Value.To == "" {
			return err
		}
		m, err := b.operator(ctx, e.Value, o)
		if err != nil {
			return err
		}
		defer m.Close()
		h, err := step(ctx, m, election, e.Value)
		if err != nil {
			return err
		}
		_, err = homeOf(keeper, election).CompareAndSet(ctx, e.Version, h)
		return err
	})
	if err != nil {
		return err
	}
	return ring(ctx, keeper, election)
}
