package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/header"
)

// The methods in this file act in the client's line and read it. Each call must succeed soon.

// Join joins the client's election.
func (c *Client) Join(text string) backend.Member {
	return c.JoinTold(text, "").Member
}

// JoinTold is Join that also returns the place and the record which Join tells.
func (c *Client) JoinTold(text, record string) backend.Joined {
	return c.Do(JoinTold(c.Election, text, record)).(backend.Joined)
}

// JoinShared joins the client's election as a shared member.
func (c *Client) JoinShared(text string) backend.Member {
	return c.Do(JoinShared(c.Election, text)).(backend.Joined).Member
}

// Append appends an item to the client's election.
func (c *Client) Append(text string) backend.Member {
	return c.Do(Append(c.Election, text)).(backend.Member)
}

// Ahead asks who stands in front of m.
func (c *Client) Ahead(m backend.Member) backend.Place { return c.Do(Ahead(m)).(backend.Place) }

// First waits until m is first, for at most d, and returns its token.
func (c *Client) First(m backend.Member, d time.Duration) uint64 {
	var p backend.Place
	what := fmt.Sprintf("%s: %s should be first", c.Name, Show(m))
	c.t.Eventually(d, what, func() bool {
		if p = c.Ahead(m); d == Now && !p.First {
			c.t.Fatalf("%s, but Ahead says that %s stands in front of it", what, Show(p.Ahead))
		}
		return p.First
	})
	return p.Token
}

// Behind checks that front stands just in front of m.
func (c *Client) Behind(m, front backend.Member) {
	p := c.Ahead(m)
	if p.First || !Same(p.Ahead, front) {
		c.t.Fatalf("%s: Ahead of %s should be %s, and is %s", c.Name, Show(m), Show(front), ShowPlace(p))
	}
}

// Leave takes m out of the line.
func (c *Client) Leave(m backend.Member) { c.Do(Leave(m)) }

// CloseSession closes the client's session.
func (c *Client) CloseSession() { c.Do(Close()) }

// Pin pins m, and writes the election's header as change has changed it. If change is nil, the
// header stays as it is. Pin returns the header that it has written.
func (c *Client) Pin(m backend.Member, change func(h *header.Header)) backend.Header {
	l := c.Line()
	if change != nil {
		h := c.Noted(l.Header)
		change(&h)
		l.Header = h.Stored()
	}
	c.Do(Pin(m, l.Header, l.Version))
	return l.Header
}

// Refresh makes what the client reads then as fresh as what all clients have been told before.
func (c *Client) Refresh() { c.Do(Refresh()) }

// Line returns the election's line. It may be older than what other clients have been told: see [Client.Refresh].
func (c *Client) Line() backend.Line { return c.Do(Line(c.Election)).(backend.Line) }

// Members returns the members in the line.
func (c *Client) Members() []backend.Member { return c.Line().Members }

// Stands reports whether m is in line.
func (c *Client) Stands(m backend.Member) bool {
	return slices.ContainsFunc(c.Members(), func(o backend.Member) bool { return Same(o, m) })
}

// Shows waits until the line is exactly want, for at most d. A client may see a little later
// what another one did. So d may be [Now] only if the client's last Refresh, Join or Gone came
// after everything that want shows.
func (c *Client) Shows(d time.Duration, want ...backend.Member) {
	var got []backend.Member
	defer func() {
		if c.t.Ctx.Err() != nil && !SameLine(got, want) {
			c.t.Log(c.Name, "last saw the line %s", ShowLine(got))
		}
	}()
	c.t.Eventually(d, fmt.Sprintf("%s: the line should be %s", c.Name, ShowLine(want)), func() bool {
		got = c.Members()
		if d == Now && !SameLine(got, want) {
			c.t.Fatalf("%s: the line should be %s, and is %s", c.Name, ShowLine(want), ShowLine(got))
		}
		return SameLine(got, want)
	})
}

// Settles lets the time of [Coordinator.Crash] pass, and then checks that the line is exactly
// want. In that time all requests on their way arrive, and members that nobody keeps alive go.
// Before that a right line proves nothing, because a member may still arrive.
func (c *Client) Settles(want ...backend.Member) {
	c.t.Pass(c.t.Crash(), "in which what is on its way may come and go")
	c.Shows(Now, want...)
}

// Get returns a record.
func (c *Client) Get(name string) backend.Record { return c.Do(Get(name)).(backend.Record) }

// Put writes a record.
func (c *Client) Put(name, text string, cond *backend.If) backend.Version {
	return c.Do(Put(name, text, cond)).(backend.Version)
}

// List returns the names of the records directly under dir.
func (c *Client) List(dir string) []string { return c.Do(List(dir)).([]string) }

// Noted returns the header with what is noted in it.
func (c *Client) Noted(h backend.Header) header.Header {
	noted, err := header.Of(h)
	c.t.Want(c.Name+": the notes of the header", err)
	return noted
}

// Header returns the header of the election.
func (c *Client) Header() header.Header {
	h, err := header.Parse(c.Get(c.Election).Value)
	c.t.Want(c.Name+": the election's record", err)
	return h
}

// PutHeader changes the header of the election, and returns it with its version.
func (c *Client) PutHeader(change func(h *header.Header)) (backend.Header, backend.Version) {
	h := c.Header()
	change(&h)
	return h.Stored(), c.Put(c.Election, string(h.Encode()), nil)
}

// PutFence raises the election's fence by the given number.
func (c *Client) PutFence(by uint64) backend.Version {
	_, v := c.PutHeader(func(h *header.Header) { h.Fence += by })
	return v
}

// Has checks that a record has this value and version.
func (c *Client) Has(name, value string, v backend.Version) {
	r := c.Get(name)
	if string(r.Value) != value || r.Version != v {
		c.t.Fatalf("%s: the record should be %.40q at version %d, and is %.40q at %d", c.Name, value, v, r.Value, r.Version)
	}
}
