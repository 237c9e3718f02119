package conformance

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A client is one independent client of the coordinator in a trial. It is a
// backend that notes in the timeline what is done through it; its other methods
// fail the trial where the coordinator does not do as it is told.
type client struct {
	*link
	line string // the election in which it acts
}

// A link is what a client has once, in however many elections it acts.
type link struct {
	t    *trial
	name string
	raw  backend.Backend

	mu   sync.Mutex
	taps map[backend.Session]*tap
	dead bool
}

// in returns the same client, which acts in another election.
func (c *client) in(line string) *client { return &client{c.link, line} }

var _ backend.Backend = (*client)(nil)

// client opens another client: a, b, c, ... It is closed with the trial.
func (t *trial) client() *client {
	t.mu.Lock()
	name := string(rune('a' + t.clients%26))
	if t.clients >= 26 {
		name += fmt.Sprint(t.clients / 26)
	}
	t.clients++
	t.mu.Unlock()
	ctx, cancel := t.within(t.h.recovery())
	defer cancel()
	b, err := t.h.Open(ctx)
	if err != nil {
		t.fatalf("Open of client %s: %v", name, err)
	}
	c := &client{&link{t: t, name: name, raw: b, taps: make(map[backend.Session]*tap)}, t.line}
	t.cleanup(func() { b.Close() })
	return c
}

// opened opens n clients.
func (t *trial) opened(n int) []*client {
	cs := make([]*client, n)
	for i := range cs {
		cs[i] = t.client()
	}
	return cs
}

// Session implements [backend.Backend].
func (c *client) Session(ctx context.Context) (backend.Session, error) {
	done := c.t.log.begin(c.name, "session")
	s, err := c.raw.Session(ctx)
	if err != nil {
		done(err)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.taps[s]
	if known == nil {
		known = &tap{Session: s, c: c}
		c.taps[s] = known
		done(fmt.Sprintf("no. %d", len(c.taps)))
	} else {
		done(nil)
	}
	return known, nil
}

// Close implements [backend.Backend].
func (c *client) Close() error {
	done := c.t.log.begin(c.name, "close backend")
	err := c.raw.Close()
	done(result(err))
	return err
}

// live returns the client's session, which must be there soon.
func (c *client) live() backend.Session { return c.liveWithin(c.t.h.soon()) }

func (c *client) liveWithin(d time.Duration) backend.Session {
	ctx, cancel := c.t.within(d)
	defer cancel()
	s, err := c.Session(ctx)
	if err != nil {
		c.t.fatalf("%s: Session: %v", c.name, err)
	}
	return s
}

// do calls f with a context that ends soon, and fails the trial where f fails.
func (c *client) do(what string, f func(ctx context.Context, s backend.Session) error) {
	s := c.live()
	ctx, cancel := c.t.within(c.t.h.soon())
	defer cancel()
	if err := f(ctx, s); err != nil {
		c.t.fatalf("%s: %s: %v", c.name, what, err)
	}
}

// join joins the client's election.
func (c *client) join(value string) backend.Member { return c.joinLine(c.line, value) }

func (c *client) joinLine(line, value string) (m backend.Member) {
	c.do("Join", func(ctx context.Context, s backend.Session) (err error) {
		m, err = s.Join(ctx, line, value)
		return err
	})
	return m
}

// ahead asks who stands in front of m.
func (c *client) ahead(m backend.Member) (p backend.Place) {
	c.do("Ahead", func(ctx context.Context, s backend.Session) (err error) {
		p, err = s.Ahead(ctx, m)
		return err
	})
	return p
}

// leads checks that m is first, and returns its token.
func (c *client) leads(m backend.Member) uint64 {
	p := c.ahead(m)
	if !p.First {
		c.t.fatalf("%s: %s should be first, but Ahead says that %s stands in front of it", c.name, show(m), show(p.Ahead))
	}
	return p.Token
}

// comesFirst waits until m is first, and returns its token.
func (c *client) comesFirst(m backend.Member, d time.Duration) uint64 {
	var p backend.Place
	c.t.poll(d, fmt.Sprintf("%s: %s should become first", c.name, show(m)), func() bool {
		p = c.ahead(m)
		return p.First
	})
	return p.Token
}

// behind checks that want stands just in front of m.
func (c *client) behind(m, want backend.Member) {
	p := c.ahead(m)
	if p.First || !same(p.Ahead, want) {
		c.t.fatalf("%s: Ahead of %s should be %s, and is %s", c.name, show(m), show(want), showPlace(p))
	}
}

// aheadFails returns the error of Ahead, which must fail.
func (c *client) aheadFails(m backend.Member) error {
	ctx, cancel := c.t.within(c.t.h.soon())
	defer cancel()
	p, err := c.live().Ahead(ctx, m)
	if err == nil {
		c.t.fatalf("%s: Ahead of %s should have failed, and says %s", c.name, show(m), showPlace(p))
	}
	return err
}

func (c *client) leave(m backend.Member) {
	c.do("Leave", func(ctx context.Context, s backend.Session) error { return s.Leave(ctx, m) })
}

// gone waits until m has gone, which must happen within d.
func (c *client) gone(m backend.Member, d time.Duration) {
	if err := await(c.t, c.going(m), d, c.name+": Gone of "+show(m)+" has not returned"); err != nil {
		c.t.fatalf("%s: Gone of %s: %v", c.name, show(m), err)
	}
}

// going waits in the background until m has gone. The wait has begun on the
// client's side when it returns; what the coordinator knows of it is not said.
func (c *client) going(m backend.Member) <-chan error {
	s := c.live()
	return c.t.async(func() error { return s.Gone(c.t.ctx, m) })
}

// lineNow returns the election's line.
func (c *client) lineNow() (l backend.Line) {
	c.do("Line", func(ctx context.Context, s backend.Session) (err error) {
		l, err = s.Line(ctx, c.line)
		return err
	})
	return l
}

func (c *client) members() []backend.Member { return c.lineNow().Members }

// stands reports whether m is in line.
func (c *client) stands(m backend.Member) bool {
	for _, o := range c.members() {
		if same(o, m) {
			return true
		}
	}
	return false
}

// shows checks that the line soon is exactly want. A client may be a little behind
// what another one did.
func (c *client) shows(want ...backend.Member) { c.showsWithin(c.t.h.soon(), want...) }

// showsNow checks that the line is exactly want. It is for a client whose last
// Join or Gone is later than all that want says.
func (c *client) showsNow(want ...backend.Member) {
	got := c.members()
	if !sameLine(got, want) {
		c.t.fatalf("%s: the line should be %s, and is %s", c.name, showLine(want), showLine(got))
	}
}

// showsWithin waits until the line is exactly want.
func (c *client) showsWithin(d time.Duration, want ...backend.Member) {
	var got []backend.Member
	defer func() {
		if c.t.ctx.Err() != nil && !sameLine(got, want) {
			c.t.log.add(c.name, "last saw the line %s", showLine(got))
		}
	}()
	c.t.poll(d, fmt.Sprintf("%s: the line should become %s", c.name, showLine(want)), func() bool {
		got = c.members()
		return sameLine(got, want)
	})
}

func (c *client) get(name string) (r backend.Record) {
	c.do("Get", func(ctx context.Context, s backend.Session) (err error) {
		r, err = s.Get(ctx, name)
		return err
	})
	return r
}

func (c *client) put(name, value string, cond *backend.If) (v backend.Version) {
	c.do("Put", func(ctx context.Context, s backend.Session) (err error) {
		v, err = s.Put(ctx, name, []byte(value), cond)
		return err
	})
	return v
}

// putFails returns the error of Put, which must fail.
func (c *client) putFails(name, value string, cond *backend.If) error {
	ctx, cancel := c.t.within(c.t.h.soon())
	defer cancel()
	v, err := c.live().Put(ctx, name, []byte(value), cond)
	if err == nil {
		c.t.fatalf("%s: Put of %s should have failed, and made version %d", c.name, name, v)
	}
	return err
}
