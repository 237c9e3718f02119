package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// This file has what a client does and sees in its line. Each call must succeed soon.

// Join joins the client's election.
func (c *Client) Join(value string) (m backend.Member) {
	c.Do(Op{Name: "Join", Call: func(ctx context.Context, s backend.Session) (err error) {
		m, err = s.Join(ctx, c.Election, value)
		return err
	}})
	return m
}

// Ahead asks who stands in front of m.
func (c *Client) Ahead(m backend.Member) (p backend.Place) {
	c.Do(Op{Name: "Ahead", Call: func(ctx context.Context, s backend.Session) (err error) {
		p, err = s.Ahead(ctx, m)
		return err
	}})
	return p
}

// First waits until m is first, at most for d, and returns its token.
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

// Leave takes m out.
func (c *Client) Leave(m backend.Member) { c.Do(Leave(m)) }

// CloseSession closes the client's session.
func (c *Client) CloseSession() { c.Do(Close()) }

// Pin pins m, and writes the header of the election as it is, after change where that is
// not nil. It returns that header.
func (c *Client) Pin(m backend.Member, change func(h *backend.Header)) backend.Header {
	l := c.Line()
	if change != nil {
		change(&l.Header)
	}
	c.Do(Pin(m, l.Header, l.Version))
	return l.Header
}

// Line returns the election's line.
func (c *Client) Line() (l backend.Line) {
	c.Do(Op{Name: "Line", Call: func(ctx context.Context, s backend.Session) (err error) {
		l, err = s.Line(ctx, c.Election)
		return err
	}})
	return l
}

// Members returns those who stand in line.
func (c *Client) Members() []backend.Member { return c.Line().Members }

// Stands reports whether m is in line.
func (c *Client) Stands(m backend.Member) bool {
	return slices.ContainsFunc(c.Members(), func(o backend.Member) bool { return Same(o, m) })
}

// Shows waits until the line is exactly want, at most for d. A client may be a little
// behind what another one did; [Now] is for one whose last Join or Gone is later than all
// that want says.
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

// Settles lets a crash pass, in which all that was on its way has come and what nobody
// keeps has gone, and then checks that the line is exactly want. A line that is as it
// should be proves nothing before: somebody may still arrive.
func (c *Client) Settles(want ...backend.Member) {
	c.t.Pass(c.t.Crash(), "in which what is on its way may come and go")
	c.Shows(Now, want...)
}

// Get returns a record.
func (c *Client) Get(name string) (r backend.Record) {
	c.Do(Op{Name: "Get", Call: func(ctx context.Context, s backend.Session) (err error) {
		r, err = s.Get(ctx, name)
		return err
	}})
	return r
}

// Put writes a record.
func (c *Client) Put(name, value string, cond *backend.If) (v backend.Version) {
	c.Do(Op{Name: "Put", Call: func(ctx context.Context, s backend.Session) (err error) {
		v, err = s.Put(ctx, name, []byte(value), cond)
		return err
	}})
	return v
}

// List returns the names of the records directly under dir.
func (c *Client) List(dir string) (names []string) {
	c.Do(Op{Name: "List", Call: func(ctx context.Context, s backend.Session) (err error) {
		names, err = s.List(ctx, dir)
		return err
	}})
	return names
}

// PutHeader changes the record of the election itself.
func (c *Client) PutHeader(change func(h *backend.Header)) (backend.Header, backend.Version) {
	h, err := backend.ParseHeader(c.Get(c.Election).Value)
	if err != nil {
		c.t.Fatalf("%s: the election's record: %v", c.Name, err)
	}
	change(&h)
	return h, c.Put(c.Election, string(h.Encode()), nil)
}

// PutFence raises the election's fence.
func (c *Client) PutFence(by uint64) backend.Version {
	_, v := c.PutHeader(func(h *backend.Header) { h.Fence += by })
	return v
}

// Has checks that a record has this value and version.
func (c *Client) Has(name, value string, v backend.Version) {
	r := c.Get(name)
	if string(r.Value) != value || r.Version != v {
		c.t.Fatalf("%s: the record should be %.40q at version %d, and is %.40q at %d", c.Name, value, v, r.Value, r.Version)
	}
}
