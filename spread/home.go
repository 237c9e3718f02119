package spread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/along"
	"github.com/succession-dev/succession/internal/lazy"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/rendezvous"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/record"
)

// homeSuffix ends the name of the record that says where an election lives.
const homeSuffix = naming.Home

// bellRecord is a founder's record of the elections that are being moved, among those whose homes
// it keeps. So a process follows one record for each founder, and not one for each election.
const bellRecord = naming.Moving

// A Home is where an election lives. A founder keeps it in a record.
type Home struct {
	// At is the cluster that the election lives on.
	At string `json:"at"`
	// To is the cluster that it is being moved to; empty if it is not being moved.
	To string `json:"to,omitempty"`
	// Planned says that the gate on To may not stand yet: candidates still go to At alone.
	Planned bool `json:"planned,omitempty"`
	// AtURL and ToURL are the addresses of both, from the list of the operator who began the move.
	// They are for package migrate: all processes must use the same addresses for the two.
	AtURL string `json:"at_url,omitempty"`
	ToURL string `json:"to_url,omitempty"`
}

// same reports whether h and o name the same clusters.
func (h Home) same(o Home) bool { return h.At == o.At && h.To == o.To }

// both reports whether candidates stand on both clusters.
func (h Home) both() bool { return h.To != "" && !h.Planned }

// known returns h as candidates have to know it: they do nothing about a move that is only planned.
func (h Home) known() Home {
	if h.Planned {
		return Home{At: h.At}
	}
	return h
}

// A home is what this process knows of an election's Home.
type home struct {
	Home
	keeper  *cluster        // nil if it has no home: At is the cluster that its name falls to
	heard   int             // how many times the bell had been heard when it was read
	left    context.Context // ends when the election has another Home
	leave   context.CancelCauseFunc
	guarded along.Alone // the records that leaders guard there
}

// errMoved says why a candidate that waits has to join again.
var errMoved = fmt.Errorf("%w: the election has another home; join again", backend.ErrNotMember)

// Where returns where the election lives, and the cluster of this process's list that its name falls
// to: a home for it if it had none yet. It blocks for about a round trip. It is no error that an
// election has no home yet: At is then empty.
func (b *Backend) Where(ctx context.Context, election string) (h Home, fallsTo string, err error) {
	defer func() { err = wrap("where", election, err) }()
	listed, err := b.list(ctx)
	if err != nil {
		return Home{}, "", err
	}
	fallsTo = rendezvous.Choose(election, listed)
	c, err := b.keeper(ctx, election, false)
	if err != nil || c == nil {
		return Home{}, fallsTo, err
	}
	e, err := homeOf(c, election).Get(ctx)
	return e.Value, fallsTo, err
}

// keeper returns the founder that keeps the election's home. It is always the same. If the list has no founders yet,
// keeper makes it founders if create is true, and otherwise returns nil.
func (b *Backend) keeper(ctx context.Context, election string, create bool) (*cluster, error) {
	if err := naming.Check(naming.Spread, election); err != nil {
		return nil, err
	}
	s, err := b.founding(ctx, create)
	if err != nil || !s.Complete {
		return nil, err
	}
	return b.use(ctx, rendezvous.Choose(election, s.Founders))
}

// homeOf returns the handle on the record of the election's home.
func homeOf(c *cluster, election string) *record.Value[Home] {
	return record.New(c.b, election+homeSuffix, record.JSON[Home]())
}

// settle returns where the election lives. If nobody has ever used it, and create is true, settle gives it a home.
func (b *Backend) settle(ctx context.Context, c *cluster, election string, create bool) (record.Entry[Home], error) {
	v := homeOf(c, election)
	e, err := v.Get(ctx)
	if err != nil || e.Exists() || !create {
		return e, err
	}
	listed, err := b.list(ctx)
	if err != nil {
		return e, err
	}
	e.Value = Home{At: rendezvous.Choose(election, listed)}
	if _, err := b.use(ctx, e.Value.At); err != nil { // the list may name another cluster under this name
		return e, err
	}
	if e.Version, err = v.CompareAndSet(ctx, backend.Absent, e.Value); errors.Is(err, backend.ErrVersion) {
		return v.Get(ctx) // somebody else was faster
	}
	if err == nil {
		b.log.Info("the election has a home", "election", election, "cluster", e.Value.At)
	}
	return e, err
}

// home returns where the election lives, as this process knows it. It asks the founder at the first
// call, and again when the bell has rung. If the election has no home, home gives it one if create is true, and
// otherwise returns one without a keeper, which it does not remember.
func (b *Backend) home(ctx context.Context, election string, create bool) (*home, error) {
	if h := b.remembered(ctx, election); h != nil {
		return h, nil
	}
	c, err := b.keeper(ctx, election, create)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return b.none(ctx, election)
	}
	b.follow(c)
	for {
		heard := c.hears()
		e, err := b.settle(ctx, c, election, create)
		switch {
		case err != nil:
			return nil, err
		case !e.Exists() && !create:
			return b.none(ctx, election)
		case !e.Exists(): // the server that was asked lags behind
			return nil, fmt.Errorf("%w: where the election lives was just written, and is not to be seen yet", backend.ErrUnavailable)
		}
		if h := b.know(c, election, e.Value, heard); h != nil {
			return h, nil
		}
	}
}

// none returns what home does for an election without a home.
func (b *Backend) none(ctx context.Context, election string) (*home, error) {
	listed, err := b.list(ctx)
	if err != nil {
		return nil, err
	}
	return &home{Home: Home{At: rendezvous.Choose(election, listed)}, left: b.life}, nil
}

// know remembers where the election lives, as it was read after the bell had been heard so many
// times. If it was heard again since, the record may have been read before it rang: then know returns
// nil. Of two calls at the same time the first counts.
func (b *Backend) know(keeper *cluster, election string, now Home, heard int) *home {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.homes[election]
	if h == nil && keeper.hears() != heard {
		return nil
	}
	if h == nil {
		h = &home{Home: now, keeper: keeper, heard: heard}
		h.left, h.leave = context.WithCancelCause(b.life)
		b.homes[election] = h
	}
	return h
}

// forget makes the next call of home ask again, and makes candidates that wait in line join again.
func (b *Backend) forget(election string, h *home) {
	b.mu.Lock()
	if b.homes[election] == h {
		delete(b.homes, election)
	}
	b.mu.Unlock()
	h.leave(errMoved)
}

// changed reports whether the election has another home than h, and forgets h if so. To be sure
// that it has read the newest state, it writes that again, on condition that nobody has written
// since.
func (b *Backend) changed(ctx context.Context, election string, h *home) (bool, error) {
	v := homeOf(h.keeper, election)
	for {
		e, err := v.Get(ctx)
		if err != nil {
			return false, err
		}
		if e.Value.known() != h.known() {
			b.forget(election, h)
			return true, nil
		}
		if _, err = v.CompareAndSet(ctx, e.Version, e.Value); !errors.Is(err, backend.ErrVersion) {
			return false, err
		}
	}
}

// remembered returns what this process knows of the election's home, or nil. If the bell has been
// heard since that was read, it may have rung for a move that had begun and ended by then, of which it
// says nothing any more. Candidates and observers meet the seal of such a move; who only reads records
// does not, nor does anybody once the old cluster has been taken away. So remembered asks the founder
// then. If that does not answer soon, what is known counts, and the founder is left alone for ten times as
// long as it was waited for: its outage is none of the elections on other clusters.
func (b *Backend) remembered(ctx context.Context, election string) *home {
	b.mu.Lock()
	h := b.homes[election]
	current := h == nil || h.heard == h.keeper.hears()
	b.mu.Unlock()
	if current || h.keeper.leftAlone() {
		return h
	}
	most := others
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	began := time.Now()
	moved, err := b.moved(ctx, election, h)
	switch {
	case moved:
		return nil
	case err != nil:
		h.keeper.leaveAlone(10 * time.Since(began))
	}
	return h
}

// moved asks the founder whether the election has another home than h, and forgets h if so.
func (b *Backend) moved(ctx context.Context, election string, h *home) (bool, error) {
	heard := h.keeper.hears()
	e, err := homeOf(h.keeper, election).Get(ctx)
	if err != nil || !e.Exists() {
		return false, err
	}
	if e.Value.known() != h.known() {
		b.forget(election, h)
		return true, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h.heard = max(h.heard, heard)
	return false, nil
}

// follow follows the bell of a founder, as long as b is open.
func (b *Backend) follow(c *cluster) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followed || b.closed {
		return
	}
	c.followed = true
	b.following.Go(func() {
		for wait := backoff.New(b.life); ; {
			for e, err := range bellOf(c).Follow(b.life) {
				if err == nil {
					b.heed(c, e.Value)
				}
			}
			if wait.Sleep(b.life) != nil {
				return
			}
		}
	})
}

func bellOf(c *cluster) *record.Value[map[string]Home] {
	return record.New(c.b, bellRecord, record.JSON[map[string]Home]())
}

// hang makes the bell of a founder, if it has none.
func hang(ctx context.Context, c *cluster) error {
	_, err := bellOf(c).CompareAndSet(ctx, backend.Absent, map[string]Home{})
	if errors.Is(err, backend.ErrVersion) {
		return nil
	}
	return err
}

// heed asks again for the homes that differ from the bell: those of elections whose move is not known
// yet, or is another one, and of elections whose move has ended. The bell alone does not count, because
// an operator may have been interrupted before he rang it. When the bell is first heard, heed asks for all
// homes, because they were read before.
func (b *Backend) heed(c *cluster, moving map[string]Home) {
	c.mu.Lock()
	first := c.heard == 0
	c.moving, c.alone = moving, time.Time{}
	c.heard++
	c.mu.Unlock()
	b.mu.Lock()
	old := make(map[string]*home)
	for election, h := range b.homes {
		if h.keeper == c && (first || !c.agrees(election, h.Home)) {
			old[election] = h
		}
	}
	b.mu.Unlock()
	elections := slices.Collect(maps.Keys(old))
	again.AtOnce(b.life, len(elections), func(ctx context.Context, i int) error {
		election, h := elections[i], old[elections[i]]
		err := again.Try(ctx, again.Passing, func() error { _, err := b.moved(ctx, election, h); return err })
		if err != nil {
			b.forget(election, h) // the next call of home says why
		}
		return nil
	})
}

// hears returns how many times the bell has been heard.
func (c *cluster) hears() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// leftAlone reports whether the founder is left alone now, as it has not answered.
func (c *cluster) leftAlone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.alone)
}

func (c *cluster) leaveAlone(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alone = time.Now().Add(d)
}

// agrees reports whether the bell does not contradict h.
func (c *cluster) agrees(election string, h Home) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	moving, ok := c.moving[election]
	return ok && h.both() && moving.same(h) || !ok && !h.both()
}

// ring writes into the bell whether the election is being moved, as the record of its home says by
// now. The home is read after the bell and the bell is written on condition of its version. So if
// somebody else changes the home meanwhile, and rings before this write, this write fails and begins
// again; if he rings after it, his counts.
func ring(ctx context.Context, c *cluster, election string) error {
	return again.Try(ctx, again.Passing, func() error {
		bell, err := bellOf(c).Get(ctx)
		if err != nil {
			return err
		}
		home, err := homeOf(c, election).Get(ctx)
		if err != nil {
			return err
		}
		moving := maps.Clone(bell.Value)
		if moving == nil {
			moving = make(map[string]Home)
		}
		delete(moving, election)
		if h := home.Value; h.both() {
			moving[election] = Home{At: h.At, To: h.To}
		}
		_, err = bellOf(c).CompareAndSet(ctx, bell.Version, moving)
		return err
	})
}

// A route is the move of elections from one cluster to another.
type route struct{ at, to, atURL, toURL string }

// A moving is the backend for all elections that move by one route.
type moving struct {
	*migrate.Backend
	first string // the election that it was made for
}

// maxRoutes is how many pairs of addresses of the same two clusters are accepted from the record of
// one election. Operators write those of their lists, which are nearly always the same. But anybody
// with a right to the record could write any number, and each pair costs this process two sessions.
const maxRoutes = 8

// at returns the backend for an election with the home h: one cluster, or two while it moves. An election without a home is only
// looked at, so its cluster need not be admitted.
func (b *Backend) at(ctx context.Context, election string, h *home) (backend.Backend, error) {
	if h.both() {
		return b.move(ctx, election, h.Home)
	}
	cluster := b.use
	if h.keeper == nil {
		cluster = b.named
	}
	c, err := cluster(ctx, h.At)
	if err != nil {
		return nil, err
	}
	return c.b, nil
}

// pair returns new backends for both clusters of a move.
func (b *Backend) pair(ctx context.Context, h Home) (subs [2]backend.Backend, err error) {
	for i, name := range []string{h.At, h.To} {
		c, err := b.named(ctx, name)
		if err != nil {
			return subs, err
		}
		subs[i] = lazy.New(func(ctx context.Context) (backend.Backend, error) {
			sub, err := b.opener(c.URL)
			if err != nil {
				return nil, err
			}
			if err := b.admit(ctx, c.Name, sub); err != nil {
				sub.Close()
				return nil, err
			}
			return sub, nil
		})
	}
	return subs, nil
}

// operator returns the backend for one step of an operator, who closes it.
func (b *Backend) operator(ctx context.Context, h Home, o *MoveOptions) (*migrate.Backend, error) {
	if o == nil {
		o = new(MoveOptions)
	}
	subs, err := b.pair(ctx, h)
	if err != nil {
		return nil, err
	}
	return migrate.New(subs[0], subs[1], &migrate.Options{From: h.AtURL, To: h.ToURL, Carry: o.Carry, Leave: o.Leave, Logger: b.log}), nil
}

// move returns the backend for the election, which moves as h says, and for all others on the same
// route. The backend has sessions of its own, because its sessions with both clusters end together.
func (b *Backend) move(ctx context.Context, election string, h Home) (*migrate.Backend, error) {
	r := route{h.At, h.To, h.AtURL, h.ToURL}
	subs, err := b.pair(ctx, h)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, backend.ErrClosed
	}
	if m, ok := b.moves[r]; ok {
		return m.Backend, nil
	}
	routes := 0
	for o, m := range b.moves {
		if m.first == election && o.at == r.at && o.to == r.to {
			routes++
		}
	}
	if routes >= maxRoutes {
		return nil, fmt.Errorf("%w move of %s: %s and %s have had %d pairs of addresses in its record %s; find out who writes it, and start this process again",
			backend.ErrInvalid, election, r.at, r.to, routes, election+homeSuffix)
	}
	m := moving{migrate.New(subs[0], subs[1], &migrate.Options{From: r.atURL, To: r.toURL, Logger: b.log}), election}
	b.moves[r] = m
	return m.Backend, nil
}
