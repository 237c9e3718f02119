package conformance

import (
	"context"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
)

// header returns the election's header, which may already say something.
func (c *client) header() backend.Header {
	h, err := backend.ParseHeader(c.get(c.line).Value)
	if err != nil {
		c.t.fatalf("%s: the election's record: %v", c.name, err)
	}
	return h
}

// changeHeader changes it.
func (c *client) changeHeader(change func(h *backend.Header)) (backend.Header, backend.Version) {
	h := c.header()
	change(&h)
	return h, c.put(c.line, string(h.Encode()), nil)
}

// raise raises the election's fence.
func (c *client) raise(by uint64) backend.Version {
	_, v := c.changeHeader(func(h *backend.Header) { h.Fence += by })
	return v
}

var folderRules = []Rule{{
	ID:    "L7.folder",
	Title: "there is nothing but members in the folder",
	Text:  "After joins, departures, a pin and writes to the election's record and to others, List of the election's name shows nothing, or keys of members that stand; List of the folder above shows the election's record once, and no other name that was not written.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		gone := b.join("y")
		a.leads(m)
		b.behind(gone, m)
		b.leave(gone)
		b.join("z")
		if t.h.can(Pins) {
			a.pinAsItIs(m)
		}
		a.raise(1)
		b.put(t.line+"-record", "x", &backend.If{Member: m}) // makes b as fresh as the others
		keys := make(map[string]bool)
		for _, m := range b.members() {
			keys[m.Key] = true
		}
		b.do("List", func(ctx context.Context, s backend.Session) error {
			under, err := s.List(ctx, t.line)
			if err != nil {
				return err
			}
			for _, name := range under {
				if !keys[strings.TrimPrefix(name, t.line+"/")] {
					t.fatalf("%q stands in the election's folder, and is no member", name)
				}
			}
			above, err := s.List(ctx, t.line[:strings.LastIndexByte(t.line, '/')])
			if err != nil {
				return err
			}
			found := 0
			for _, name := range above {
				switch {
				case name == t.line:
					found++
				case strings.HasPrefix(name, t.line) && name != t.line+"-record":
					t.fatalf("%q stands beside the election's record, and nobody wrote it", name)
				}
			}
			if found != 1 {
				t.fatalf("List shows the election's record %d times in %v", found, above)
			}
			return nil
		})
	},
}, {
	ID:    "L7.header",
	Title: "the record of that name is the header",
	Text:  "What is put under the election's name is what Line shows as its header, with that version, soon. It stays so, but for what a migration writes: before anybody joins, while somebody stands, and after all have left. Line of an election that nobody has written to or joined has nobody, the version of its record, and where that is Absent the zero header.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		l := b.lineNow()
		if r := b.get(t.line); len(l.Members) != 0 || l.Version != r.Version || l.Version == backend.Absent && l.Header != (backend.Header{}) {
			t.fatalf("the line of an election that nobody has joined is %+v, its record %+v", l, r)
		}
		var h backend.Header
		stays := func(when string) {
			l := a.lineNow()
			h.Migration = l.Header.Migration // a migration may go on meanwhile
			if l.Header != h {
				t.fatalf("%s, Line has the header %+v; want %+v", when, l.Header, h)
			}
			if r := a.get(t.line); r.Version != l.Version || string(r.Value) != string(h.Encode()) {
				t.fatalf("%s, Get of the header is %q at version %d; want %q at %d", when, r.Value, r.Version, h.Encode(), l.Version)
			}
		}
		check := func(change func(h *backend.Header)) {
			var v backend.Version
			h, v = a.changeHeader(change)
			stays("after Put")
			t.poll(t.h.soon(), "Line shows the header that was put", func() bool {
				l := b.lineNow()
				return l.Header == h && l.Version == v
			})
		}
		first := l.Header.Fence
		check(func(h *backend.Header) { h.Fence = first + 7 })
		m := a.join("x")
		stays("after Join")
		check(func(h *backend.Header) { h.Fence, h.Acknowledged, h.Resign = first+8, 9, 3 })
		a.leave(m)
		stays("after the last has left")
		check(func(h *backend.Header) { h.Fence, h.Acknowledged, h.Resign = first+9, 0, 0 })
	},
}, {
	ID:    "L7.ahead",
	Title: "Ahead brings the election's record",
	Text:  "One client changes the header, and then another joins. Ahead brings what was written, to who waits and, when the first has left and joined again, to who is first. Five times in turn.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		first := a.join("x")
		for i := range uint64(5) {
			a.changeHeader(func(h *backend.Header) { h.Resign = i + 1 })
			brings := func(c *client, m backend.Member) {
				if p := c.ahead(m); p.Header.Resign != i+1 {
					t.fatalf("Ahead of %s is %s with the header %+v; %d was written to Resign", show(m), showPlace(p), p.Header, i+1)
				}
			}
			next := b.join("y")
			brings(b, next)
			b.leave(next)
			a.leave(first)
			first = a.join("x")
			brings(a, first)
		}
	},
}, {
	ID:    "L7.fence",
	Title: "the token is fence and position",
	Text:  "The token that Ahead says is the position plus the fence, as of when the line was read: a fence that was raised before the leader in front left is in the token of who comes next, who has seen that leader in front, and perhaps the lower fence.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		m, next := a.join("x"), b.join("y")
		token := a.leads(m)
		fence := a.header().Fence
		if token != fence+m.Position {
			t.fatalf("the token is %d; want fence %d + position %d", token, fence, m.Position)
		}
		for range 5 {
			fence += 1000
			b.behind(next, m)
			going := b.going(m)
			c.raise(1000)
			a.leave(m)
			if err := await(t, going, t.h.soon(), "Gone has not returned after Leave"); err != nil {
				t.fatalf("Gone: %v", err)
			}
			if token := b.comesFirst(next, t.h.soon()); token != fence+next.Position {
				t.fatalf("the token is %d; want fence %d + position %d", token, fence, next.Position)
			}
			m = next
			next = a.join("z")
			a, b = b, a
		}
	},
}, {
	ID:    "L7.fence-cut",
	Title: "the fence is read no earlier than the line",
	Text:  "Twenty times, a client is cut off at a moment from 0 to four round trips after it asked who stands in front. Meanwhile another client raises the fence, and then the leader in front leaves; then it is healed. Where Ahead says First, then or when it is asked again, the raised fence is in the token.",
	Needs: []Fault{Cut, Records},
	check: func(t *trial) {
		a, b, c := t.client(), t.client(), t.client()
		round := t.roundTrip(b)
		s := b.live()
		for i := range 20 {
			m, next := a.join("x"), b.join("y")
			fence := a.header().Fence + 1000
			asking := make(chan backend.Place, 1)
			t.spawn(func() {
				p, err := s.Ahead(t.ctx, next)
				t.log.add("b", "asked while it was cut off: %s, %v", showPlace(p), err)
				asking <- p
			})
			t.pass(time.Duration(i)*round/5+1, "until the request is on its way")
			heal := b.cut()
			c.raise(1000)
			a.leave(m)
			heal()
			p := await(t, asking, t.h.soon(), "Ahead has not returned after a short cut")
			if !p.First {
				p.Token = b.comesFirst(next, t.h.soon())
			}
			if p.Token != fence+next.Position {
				t.fatalf("the token is %d; want fence %d + position %d", p.Token, fence, next.Position)
			}
			b.leave(next)
		}
	},
}, {
	ID:    "L7.foreign",
	Title: "a stranger's data is no header",
	Text:  "Where the election's record holds data that is not of this project, such as a host name or JSON of another program, the header is zero, and the line works as it does without.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		m := a.join("x")
		for _, data := range []string{"", "10.0.0.7", `{"leader":"host-1"}`, "\x00\xff", "succession"} {
			v := b.put(t.line, data, nil)
			if token := a.leads(m); token != m.Position {
				t.fatalf("with %q as the election's record the token is %d; want %d", data, token, m.Position)
			}
			if l := b.lineNow(); l.Header != (backend.Header{}) || l.Version != v || !sameLine(l.Members, []backend.Member{m}) {
				t.fatalf("with %q as the election's record the line is %+v", data, l)
			}
		}
	},
}, {
	ID:    "L7.damaged",
	Title: "a damaged header is an error",
	Text:  "Where the election's record begins as ours and cannot be understood, Ahead of the first member and Line fail with ErrHeader; to take the fence for 0 would let tokens fall.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a := t.client()
		m := a.join("x")
		for _, data := range []string{`{"succession":1,"fence":"x"}`, `{"succession":2}`, `{"succession":1,"fence":7`, `{"succession":1,"later":1}`} {
			a.put(t.line, data, nil)
			if err := a.aheadFails(m); !is(err, backend.ErrHeader) {
				t.fatalf("with %s as the election's record, Ahead failed with %v; want ErrHeader", data, err)
			}
			ctx, cancel := t.within(t.h.soon())
			_, err := a.live().Line(ctx, t.line)
			cancel()
			if !is(err, backend.ErrHeader) {
				t.fatalf("with %s as the election's record, Line returned %v; want ErrHeader", data, err)
			}
		}
	},
}}
