//go:build !race

package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A situation is what decides what a composite does next: the line and the record of both
// sides, as it sees them who stands there as me. It comes from side 0.
type situation struct {
	side [2]mSide
	to   bool // it hangs on side 1 alone
}

// situation returns that of process p, a composite that is not about to end; false where
// it has none.
func (m *model) situation(p int) (s situation, ok bool) {
	q := &m.proc[p]
	from, to, ok := q.sides()
	if !ok || q.dead || q.closing || q.alone == uint8(1+from) {
		return s, false
	}
	s.side, s.to = [2]mSide{m.side[from].as(p), m.side[to].as(p)}, q.alone == uint8(1+to)
	// Who has sealed From leads already, by To, and its seal is no member of its any more.
	return s, !s.to || q.lead == 0
}

func (s situation) stands() bool { return s.side[0].find(me) >= 0 || s.side[1].find(me) >= 0 }

// A compared model is one whose situations have been given to the code of this package,
// each once.
type compared struct {
	mu   sync.Mutex
	done map[situation]bool
}

// state compares what the model and the code do in the situations of all composites of a
// state, as far as the explorer, which knows them, has not met them before. It returns
// what differs.
func (c *compared) state(e *explorer, m *model) string {
	if c == nil {
		return ""
	}
	for p := range m.proc {
		s, ok := m.situation(p)
		if !ok || e.met[s] {
			continue
		}
		e.met[s] = true
		c.mu.Lock()
		known := c.done[s]
		c.done[s] = true
		c.mu.Unlock()
		if known {
			continue
		}
		want, got := s.model(), s.code()
		if want != got {
			return fmt.Sprintf("the model %s, and the code %s\n%+v", want, got, s)
		}
	}
	return ""
}

// model is what the model does.
func (s situation) model() string {
	m := model{side: s.side}
	m.proc[me].mode = both
	d := new(decisions)
	switch {
	case !s.stands():
		e := explorer{d: d}
		return joins(e.judge(&m, 0, 1), d.phase(s.side[0].mRecord, s.side[1].mRecord) == protocol.Sealed)
	case s.to:
		return d.alone(&s.side[1], me).String()
	}
	v := d.verdict(&m, me, 0, 1)
	f, t := &s.side[0], &s.side[1]
	switch v {
	case leadsBoth:
		return fmt.Sprintf("%v with %d", v, f.token(0))
	case leadsFrom:
		return fmt.Sprintf("%v with %d", v, f.token(0))
	case raisesFrom:
		return fmt.Sprintf("%v to %d", v, f.fence+t.token(1)-f.token(0))
	case raisesTo:
		return fmt.Sprintf("%v to %d", v, t.fence+f.token(0)-t.token(1))
	}
	return v.String()
}

func joins(side int, finishes bool) string {
	text := map[int]string{-1: "refuses to join", 0: "joins From for both", 1: "joins From for both", 2: "joins To"}[side]
	if finishes {
		text += " and finishes the cutover"
	}
	return text
}

// code is what the code of this package does, with a coordinator on each side on which
// nothing else happens.
func (s situation) code() string {
	var c [2]*still
	for side := range c {
		c[side] = &still{side: side, done: make(chan struct{})}
	}
	b := migrate.New(backendOf{c[0]}, backendOf{c[1]}, &migrate.Options{From: modelURLs[0], To: modelURLs[1]})
	defer b.Close()
	ctx := context.Background()
	composite, err := b.Session(ctx)
	if err != nil {
		return err.Error()
	}
	if !s.stands() {
		s.show(c)
		return joined(composite, c)
	}
	m, err := s.enter(ctx, composite, c)
	if err != nil {
		return "cannot be brought there: " + err.Error()
	}
	s.show(c)
	pl, err := composite.Ahead(ctx, m)
	return s.said(pl, err, c)
}

// enter brings the composite to where it stands, on coordinators that let it.
func (s situation) enter(ctx context.Context, composite backend.Session, c [2]*still) (backend.Member, error) {
	from, to := &s.side[0], &s.side[1]
	gate, other := mMember{nobody, 100}, mMember{others, 101}
	begun := mSide{line: [places]mMember{gate, other}, n: 2, mRecord: mRecord{target: true, id: 1, step: stepBegun, gate: gate.pos}}
	moved := mSide{mRecord: mRecord{target: true, id: 1, step: stepMoved}}
	mine := func(side *mSide) mMember {
		if i := side.find(me); i >= 0 {
			return side.line[i]
		}
		return mMember{me, 99} // it has gone meanwhile
	}
	switch {
	case s.to:
		c[0].show(mSide{})
		c[1].show(moved)
		c[1].next = mine(to)
		j, err := composite.Join(ctx, election, "me", "")
		return j.Member, err
	case to.find(me) < 0:
		c[0].show(mSide{})
		c[1].show(begun)
		c[0].next = mine(from)
		j, err := composite.Join(ctx, election, "me", "")
		return j.Member, err
	}
	c[0].show(mSide{})
	c[1].show(begun)
	c[0].next, c[1].next = mine(from), mine(to)
	m, err := composite.Join(ctx, election, "me", "")
	if err == nil {
		_, err = composite.Ahead(ctx, m.Member) // which takes To, too
	}
	return m.Member, err
}

// show shows the situation.
func (s situation) show(c [2]*still) {
	for side := range c {
		c[side].show(s.side[side])
		c[side].stops = true
	}
}

// joined is what the composite does where it stands nowhere.
func joined(composite backend.Session, c [2]*still) string {
	_, err := composite.Join(context.Background(), election, "me", "")
	finishes := slices.Contains(c[1].did, "moves")
	switch {
	case errors.Is(err, errStill) && slices.Contains(c[1].did, "joins"):
		return joins(2, finishes)
	case errors.Is(err, errStill) && slices.Contains(c[0].did, "joins"):
		return joins(0, finishes)
	case errors.Is(err, migrate.ErrNotBegun), errors.Is(err, migrate.ErrOther), errors.Is(err, backend.ErrHeader):
		return joins(-1, finishes)
	}
	return fmt.Sprintf("%v, after %v and %v", err, c[0].did, c[1].did)
}

// said is what the composite does, as it says or as it shows by its first write.
func (s situation) said(pl backend.Place, err error, c [2]*still) string {
	switch {
	case errors.Is(err, errStill) && slices.Contains(c[1].did, "joins"):
		return joinsTo.String()
	case errors.Is(err, errStill) && c[0].fence > 0:
		return fmt.Sprintf("%v to %d", raisesFrom, c[0].fence)
	case errors.Is(err, errStill) && c[1].fence > 0:
		return fmt.Sprintf("%v to %d", raisesTo, c[1].fence)
	case errors.Is(err, backend.ErrNotMember):
		return joinsAnew.String()
	case errors.Is(err, migrate.ErrRefused), errors.Is(err, migrate.ErrNotBegun):
		return refuses.String()
	case err != nil:
		return fmt.Sprintf("%v, after %v and %v", err, c[0].did, c[1].did)
	case !pl.First && pl.Ahead.Key[0] == 't': // to:
		return waitsOnTo.String()
	case !pl.First:
		return waitsOnFrom.String()
	case s.to:
		return leadsTo.String()
	case s.side[1].sealed:
		return fmt.Sprintf("%v with %d", leadsFrom, pl.Token)
	}
	return fmt.Sprintf("%v with %d", leadsBoth, pl.Token)
}

// errStill is what a write to the election fails with, so that it is the last.
var errStill = errors.New("the coordinator stays as it is")

// A still is a session with one side of the model, which stays as it is.
type still struct {
	backend.Session // anything else is not asked of it
	side            int
	line            header.Line
	next            mMember // who joins next, until it stops
	done            chan struct{}

	mu    sync.Mutex
	stops bool
	asked int      // for the line
	did   []string // what it was asked to write
	fence uint64   // that was to be raised to
}

func (*still) Refresh(context.Context) error { return nil }

// patience is how often a composite may ask for the line in two calls.
const patience = 20

var errEndless = errors.New("it asks without end")

type backendOf struct{ s *still }

func (b backendOf) Session(context.Context) (backend.Session, error) { return b.s, nil }
func (b backendOf) Close() error                                     { return nil }

// show makes it look like a side of the model.
func (c *still) show(side mSide) { c.line = side.seen(c.side) }

func (c *still) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.did = append(c.did, what)
}

func (c *still) Join(_ context.Context, line, _, _ string) (backend.Joined, error) {
	if line != election { // a mark
		return backend.Joined{}, backend.ErrDenied
	}
	if c.stops {
		c.note("joins")
		return backend.Joined{}, errStill
	}
	m := member(c.next)
	c.line.Members = append(c.line.Members, m)
	return backend.Joined{Member: m}, nil
}

func (c *still) Ahead(_ context.Context, m backend.Member) (backend.Place, error) {
	i := slices.Index(c.line.Members, m)
	switch {
	case i < 0:
		return backend.Place{}, backend.ErrNotMember
	case i == 0:
		return kit.PlaceOf(m, nil, c.line.Header.Stored())
	}
	return kit.PlaceOf(m, &c.line.Members[i-1], c.line.Header.Stored())
}

func (c *still) Line(context.Context, string) (backend.Line, error) {
	if c.asked++; c.asked > patience {
		return backend.Line{}, errEndless
	}
	return backend.Line{Members: slices.Clone(c.line.Members), Header: c.line.Header.Stored(), Version: c.line.Version}, nil
}

func (c *still) Get(_ context.Context, name string) (backend.Record, error) {
	if name != election {
		return backend.Record{Name: name, Version: backend.Absent}, nil
	}
	return backend.Record{Name: name, Value: c.line.Header.Encode(), Version: c.line.Version}, nil
}

// Put stops who raises the election's fence. The end of a cutover may be written by
// anybody on the way to something else.
func (c *still) Put(_ context.Context, name string, value []byte, _ *backend.If) (backend.Version, error) {
	if name == naming.OfElection(election, naming.Fence) {
		return 1, nil
	}
	h, err := header.Parse(value)
	if err != nil {
		return 0, err
	}
	if h.Fence == c.line.Header.Fence && h.Migration.Step == stepNames[stepMoved] {
		c.note("moves")
		return 2, nil
	}
	c.fence = h.Fence
	c.note("raises")
	return 0, errStill
}

func (c *still) Leave(context.Context, backend.Member) error { return nil }
func (c *still) TTL() time.Duration                          { return 0 }
func (c *still) MaxMargin() time.Duration                    { return 0 }
func (c *still) Deadline() time.Time                         { return time.Time{} }
func (c *still) Done() <-chan struct{}                       { return c.done }
func (c *still) OnEnd(func(error)) (stop func())             { return func() {} }
func (c *still) Err() error                                  { return nil }
func (c *still) Close(context.Context) error                 { return nil }

var verdictNames = [...]string{
	waitsOnFrom: "waits on From", waitsOnTo: "waits on To", joinsAnew: "joins anew", refuses: "refuses", joinsTo: "joins To",
	raisesFrom: "raises the fence of From", raisesTo: "raises the fence of To",
	leadsFrom: "leads by From alone", leadsBoth: "leads by both", leadsTo: "leads by To alone",
}

func (v verdict) String() string { return verdictNames[v] }
