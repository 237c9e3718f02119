package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A Client is one independent client of the coordinator in a trial. Its methods act in one
// election. It is a backend that notes in the timeline each call that goes through it.
type Client struct {
	*link
	Election string // the election in which the client acts
}

// A link is the part of a client that does not depend on the election.
type link struct {
	Name string // a, b, c, ...

	t    *Trial
	raw  backend.Backend
	mu   sync.Mutex
	taps map[backend.Session]backend.Session
	dead bool
}

// In returns the same client for another election.
func (c *Client) In(election string) *Client { return &Client{c.link, election} }

var _ backend.Backend = (*Client)(nil)

// Client opens another client. It is closed at the end of the trial.
func (t *Trial) Client() *Client { return t.client(t.Open) }

// FailoverClient is Client for one that knows all servers of the cluster.
func (t *Trial) FailoverClient() *Client { return t.client(t.Faults.Failover) }

func (t *Trial) client(open func(context.Context) (backend.Backend, error)) *Client {
	t.mu.Lock()
	name := string(rune('a' + t.clients%26))
	if t.clients >= 26 {
		name += fmt.Sprint(t.clients / 26)
	}
	t.clients++
	t.mu.Unlock()
	ctx, cancel := t.Within(t.Recovery())
	defer cancel()
	b, err := open(ctx)
	if err != nil {
		t.Fatalf("Open of client %s: %v", name, err)
	}
	t.Cleanup(func() { b.Close() })
	return &Client{&link{t: t, Name: name, raw: b, taps: make(map[backend.Session]backend.Session)}, t.Name}
}

// Clients opens n clients.
func (t *Trial) Clients(n int) []*Client {
	cs := make([]*Client, n)
	for i := range cs {
		cs[i] = t.Client()
	}
	return cs
}

// Session implements [backend.Backend].
func (c *Client) Session(ctx context.Context) (backend.Session, error) {
	done := c.t.log.begin(c.Name, "session")
	s, err := c.raw.Session(ctx)
	if err != nil {
		done(err)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead { // a client that is killed by ending its session could open another one
		err := fmt.Errorf("%w: the client was killed", backend.ErrClosed)
		done(err)
		return nil, err
	}
	known := c.taps[s]
	if known == nil {
		known = c.tapped(s)
		c.taps[s] = known
		done(fmt.Sprintf("no. %d", len(c.taps)))
	} else {
		done(nil)
	}
	return known, nil
}

// Close implements [backend.Backend].
func (c *Client) Close() error {
	done := c.t.log.begin(c.Name, "close backend")
	err := c.raw.Close()
	done(result(err))
	return err
}

// Closes closes the client, which must succeed.
func (c *Client) Closes() { c.t.Want(c.Name+": Close", c.Close()) }

// Live returns the client's live session, which it must have soon.
func (c *Client) Live() backend.Session { return c.LiveWithin(c.t.Soon()) }

// LiveWithin is [Client.Live] with another bound, for a client that may have to open a new
// session.
func (c *Client) LiveWithin(d time.Duration) backend.Session {
	ctx, cancel := c.t.Within(d)
	defer cancel()
	s, err := c.Session(ctx)
	if err != nil {
		c.t.Fatalf("%s: Session: %v", c.Name, err)
	}
	return s
}

// Try makes a call, and returns its error. The call's context ends soon.
func (c *Client) Try(op Op) error {
	_, err := c.try(op)
	return err
}

func (c *Client) try(op Op) (value any, err error) {
	s := c.Live()
	ctx, cancel := c.t.Within(c.t.Soon())
	defer cancel()
	return op.call(ctx, s)
}

// Do makes a call that must succeed soon, and returns its value.
func (c *Client) Do(op Op) any {
	value, err := c.try(op)
	c.t.Want(c.Name+": "+op.Name, err)
	return value
}

// Fails makes a call that must fail soon, with one of the errors. If none is given, it may fail
// with any.
func (c *Client) Fails(op Op, want ...error) error {
	err := c.Try(op)
	if err == nil {
		c.t.Never("%s: %s has succeeded; want %s", c.Name, op.Name, wanted(want))
	}
	if len(want) > 0 {
		c.t.Want(c.Name+": "+op.Name, err, want...)
	}
	return err
}

// Go begins a call in the background. When Go returns, the call may not have reached the
// coordinator.
func (c *Client) Go(op Op) *Call {
	s := c.Live()
	return c.t.Go(c.Name+": "+op.Name, func() error { return op.Call(c.t.Ctx, s) })
}

// Gone begins to call Gone for m in the background.
func (c *Client) Gone(m backend.Member) *Call { return c.Go(Gone(m)) }

// Loses makes a call that writes, and loses the answer. The call must return within
// [Coordinator.Crash] plus [Coordinator.Soon], with one of the errors, as in [Call.Returns].
func (c *Client) Loses(op Op, want ...error) (value any, err error) {
	s := c.Live()
	c.Inject(LoseAnswer)
	err = c.t.Go(c.Name+": "+op.Name+" with a lost answer", func() (err error) {
		ctx, cancel := c.t.Within(c.t.Crash())
		defer cancel()
		value, err = op.call(ctx, s)
		return err
	}).Returns(c.t.Crash()+c.t.Soon(), want...)
	return value, err
}

// Expires makes the coordinator end the client's session, and waits until the session's Done is
// closed.
func (c *Client) Expires() {
	s := c.Live()
	c.Inject(Expire)
	Await(c.t, s.Done(), c.t.Crash(), c.Name+": Done has not closed after the end of the session")
}

// RoundTrip measures a round trip of the client. It returns at least 100 microseconds.
func (c *Client) RoundTrip() time.Duration {
	c.Line()
	began := time.Now()
	c.Line()
	return max(time.Since(began), 100*time.Microsecond)
}

// Requests returns how many requests the client has sent.
func (c *Client) Requests() int64 { return c.t.Faults.Requests(c.raw) }

// Most is how many requests the rule allows on this coordinator.
func (t *Trial) Most() int64 { return cmp.Or(t.Costs[t.rule.ID], t.rule.Most) }

// Bytes returns how many bytes have passed between the client and the coordinator.
func (c *Client) Bytes() int64 { return c.t.Faults.Bytes(c.raw) }

// Server returns the number of the server in the cluster that the client talks to.
func (c *Client) Server() int { return c.t.Faults.Of(c.raw) }

// Killed reports whether the client was killed.
func (c *Client) Killed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}
