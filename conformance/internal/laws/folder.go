package laws

import (
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/header"
)

// raised returns the fence of the line, which was put with the version at. It is that fence, unless somebody has written
// the record since: a migration to a coordinator with larger positions raises the fence, and nobody lowers it.
func raised(t *engine.Trial, c *engine.Client, fence uint64, at backend.Version) uint64 {
	l := c.Line()
	if got := l.Header.Fence; got != fence && (l.Version == at || got < fence) {
		t.Never("the fence is %d, at version %d; %d was put, at version %d", got, l.Version, fence, at)
	}
	return l.Header.Fence
}

// fenceMeanwhile returns the check of a rule: while a client asks who stands in front, somebody
// raises the fence, and then goes has the leader in front go.
func fenceMeanwhile(goes func(a *engine.Client, m backend.Member)) func(*engine.Trial) {
	return func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		round := b.RoundTrip()
		s := b.Live()
		for i := range 20 {
			m, next := a.Join("x"), b.Join("y")
			fence := a.Header().Fence + 1000
			var p backend.Place
			asking := t.Go("Ahead", func() (err error) {
				p, err = s.Ahead(t.Ctx, next)
				return err
			})
			t.Pass(time.Duration(i)*round/5+1, "until the request is on its way")
			heal := b.Inject(engine.Cut)
			v := c.PutFence(1000)
			goes(a, m)
			heal()
			engine.Await(t, asking.Result(), t.Soon(), "Ahead has not returned after a short cut")
			if !p.First {
				p.Token = b.First(next, t.Soon())
			}
			fence = raised(t, b, fence, v)
			if p.Token != fence+next.Position {
				t.Never("the token is %d; want fence %d + position %d", p.Token, fence, next.Position)
			}
			b.Leave(next)
		}
	}
}

var folderRules = []engine.Rule{{
	ID: "L7.folder", Title: "there is nothing but members in the folder",
	Text:  "After joins, departures, a pin and writes to the election's record and to others, List of the election's name shows nothing, or keys of members that stand; List of the folder above shows the election's record once, and no other name that was not written.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		name := t.Name + "-above/e" // a folder that no other rule uses: how long a List takes grows with it
		a, b := t.Client().In(name), t.Client().In(name)
		m := a.Join("x")
		gone := b.Join("y")
		a.First(m, engine.Now)
		b.Behind(gone, m)
		b.Leave(gone)
		b.Join("z")
		if t.Can(engine.Pins) {
			a.Pin(m, nil)
		}
		a.PutFence(1)
		b.Put(name+"-record", "x", &backend.If{Member: m}) // makes b as fresh as the others
		keys := make(map[string]bool)
		for _, m := range b.Members() {
			keys[m.Key] = true
		}
		for _, k := range b.List(name) {
			if !keys[strings.TrimPrefix(k, name+"/")] {
				t.Fatalf("%q stands in the election's folder, and is no member", k)
			}
		}
		found := 0
		above := b.List(path.Dir(name))
		for _, k := range above {
			switch {
			case k == name:
				found++
			case k != name+"-record":
				t.Fatalf("%q stands beside the election's record, and nobody wrote it", k)
			}
		}
		if found != 1 {
			t.Fatalf("List shows the election's record %d times in %v", found, above)
		}
	},
}, {
	ID: "L7.header", Title: "the record of that name is the header",
	Text:  "What is put under the election's name is what Line shows as its header, with that version, soon. It stays so, but for what a migration writes: before anybody joins, while somebody stands, and after all have left. Line of an election that nobody has written to or joined has nobody, the version of its record, and where that is Absent the zero header.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		l := b.Line()
		if r := b.Get(t.Name); len(l.Members) != 0 || l.Version != r.Version || l.Version == backend.Absent && l.Header != (backend.Header{}) {
			t.Fatalf("the line of an election that nobody has joined is %+v, its record %+v", l, r)
		}
		var put backend.Header
		stays := func(when string) {
			l := a.Line()
			h, now := a.Noted(put), a.Noted(l.Header)
			h.Migration = now.Migration // a migration may go on meanwhile
			if now != h {
				t.Fatalf("%s, Line has the header %+v; want %+v", when, now, h)
			}
			if r := a.Get(t.Name); r.Version != l.Version || string(r.Value) != string(h.Encode()) {
				t.Fatalf("%s, Get of the header is %q at version %d; want %q at %d", when, r.Value, r.Version, h.Encode(), l.Version)
			}
		}
		check := func(change func(h *header.Header)) {
			var v backend.Version
			put, v = a.PutHeader(change)
			stays("after Put")
			t.Eventually(t.Soon(), "Line shows the header that was put", func() bool {
				l := b.Line()
				return l.Header == put && l.Version == v
			})
		}
		first := l.Header.Fence
		check(func(h *header.Header) { h.Fence = first + 7 })
		m := a.Join("x")
		stays("after Join")
		check(func(h *header.Header) { h.Fence, h.Acknowledged, h.Resign = first+8, 9, 3 })
		a.Leave(m)
		stays("after the last has left")
		check(func(h *header.Header) { h.Fence, h.Acknowledged, h.Resign = first+9, 0, 0 })
	},
}, {
	ID: "L7.ahead", Title: "Ahead brings the election's record",
	Text:  "One client changes the header, and then another joins. Ahead brings what was written, to who waits and, when the first has left and joined again, to who is first; only the fence may have been raised since. Five times in turn.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		first := a.Join("x")
		for i := range uint64(5) {
			h, _ := a.PutHeader(func(h *header.Header) { h.Resign = i + 1 })
			brings := func(c *engine.Client, m backend.Member) {
				p, want := c.Ahead(m), h
				want.Fence = max(h.Fence, c.Header().Fence) // a migration to larger positions raises it on the way
				if p.Header != want {
					t.Never("Ahead of %s is %s with the header %+v; %+v was written", engine.Show(m), engine.ShowPlace(p), p.Header, want)
				}
			}
			next := b.Join("y")
			brings(b, next)
			b.Leave(next)
			a.Leave(first)
			first = a.Join("x")
			brings(a, first)
		}
	},
}, {
	ID: "L7.fence", Title: "the token is fence and position",
	Text:  "The token that Ahead says is the position plus the fence, as of when the line was read: a fence that was raised before the leader in front left is in the token of who comes next, who has seen that leader in front, and perhaps the lower fence. Only who writes the record may have raised the fence further, as a migration does.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b, c := t.Client(), t.Client(), t.Client()
		m, next := a.Join("x"), b.Join("y")
		token := a.First(m, engine.Now)
		fence := a.Header().Fence
		if token != fence+m.Position {
			t.Never("the token is %d; want fence %d + position %d", token, fence, m.Position)
		}
		for range 5 {
			fence += 1000
			b.Behind(next, m)
			going := b.Gone(m)
			v := c.PutFence(1000)
			a.Leave(m)
			going.Returns(t.Soon())
			token := b.First(next, t.Soon())
			fence = raised(t, b, fence, v)
			if token != fence+next.Position {
				t.Never("the token is %d; want fence %d + position %d", token, fence, next.Position)
			}
			m = next
			next = a.Join("z")
			a, b = b, a
		}
	},
}, {
	ID: "L7.fence-cut", Title: "the fence is read no earlier than the line",
	Text:  "Twenty times, a client is cut off at a moment from 0 to four round trips after it asked who stands in front. Meanwhile another client raises the fence, and then the leader in front leaves; then it is healed. Where Ahead says First, then or when it is asked again, the raised fence is in the token.",
	Needs: []engine.Fault{engine.Cut, engine.Records}, Check: fenceMeanwhile((*engine.Client).Leave),
}, {
	ID: "L7.fence-closed", Title: "the fence is read no earlier than the end of a session in front",
	Text:  "As L7.fence-cut, when the session of the leader in front is closed.",
	Needs: []engine.Fault{engine.Cut, engine.Records},
	Check: fenceMeanwhile(func(a *engine.Client, _ backend.Member) { a.CloseSession() }),
}, {
	ID: "L7.fence-expired", Title: "the fence is read no earlier than the expiry of a session in front",
	Text:  "As L7.fence-cut, when the coordinator has ended the session of the leader in front.",
	Needs: []engine.Fault{engine.Cut, engine.Expire, engine.Records},
	Check: fenceMeanwhile(func(a *engine.Client, _ backend.Member) { a.Expires() }),
}, {
	ID: "L7.foreign", Title: "a stranger's data is no header",
	Text:  "Where the election's record holds data that is not of this project, such as a host name or JSON of another program, the header is zero, and the line works as it does without.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		m := a.Join("x")
		for _, data := range []string{"", "10.0.0.7", `{"leader":"host-1"}`, "\x00\xff", "succession"} {
			v := b.Put(t.Name, data, nil)
			token := a.First(m, engine.Now)
			h := backend.Header{Fence: raised(t, b, 0, v)}
			if token != m.Position+h.Fence {
				t.Never("with %q as the election's record the token is %d; want %d", data, token, m.Position+h.Fence)
			}
			if l := b.Line(); l.Header != h || l.Version != v && h.Fence == 0 || !engine.SameLine(l.Members, []backend.Member{m}) {
				t.Never("with %q as the election's record the line is %+v", data, l)
			}
		}
	},
}, {
	ID: "L7.damaged", Title: "a damaged header is an error",
	Text:  "Where the election's record begins as ours and cannot be understood, Ahead of the first member and Line fail with ErrHeader; to take the fence for 0 would let tokens fall.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a := t.Client()
		m := a.Join("x")
		for _, data := range []string{`{"succession":2,"fence":"x"}`, `{"succession":3}`, `{"succession":2,"fence":7`, `{"succession":0,"fence":7}`, `{"succession":2,"later":1}`, `{"succession":2,"Fence":7}`, `{"succession":2,"notes":7}`} {
			a.Put(t.Name, data, nil)
			a.Fails(engine.Ahead(m), backend.ErrHeader)
			a.Fails(engine.Line(t.Name), backend.ErrHeader)
		}
	},
}, {
	ID: "L7.later", Title: "what a later version writes into the header is kept, and obeyed",
	Text:  "Where the election's record has notes that this version does not know, Ahead says First, with them, and a pin writes them again. Where it says that a leader needs what this version does not know, Ahead fails with ErrHeader for every member, and Line does not.",
	Needs: []engine.Fault{engine.Records, engine.Pins}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		gate, second := a.Join("x"), b.Join("y")
		const later = `{"later":{"weights":[1,2]},"sooner":7}`
		v := a.Put(t.Name, `{"succession":2,"fence":7,"notes":`+later+`}`, nil)
		token := a.First(gate, engine.Now)
		fence := raised(t, a, 7, v)
		if token != gate.Position+fence {
			t.Fatalf("the token is %d; want the position %d and the fence %d", token, gate.Position, fence)
		}
		l := a.Line()
		if l.Header.Notes != later {
			t.Fatalf("the header is %+v; want %s", l.Header, later)
		}
		l.Header.Fence++
		a.Do(engine.Pin(gate, l.Header, l.Version))
		b.Refresh()
		if h := b.Line().Header; h.Fence != fence+1 || h.Notes != later {
			t.Fatalf("after a pin the header is %+v; want the fence %d, and %s", h, fence+1, later)
		}
		a.Leave(gate)
		b.First(second, t.Soon())
		b.Put(t.Name, `{"succession":2,"needs":"weights"}`, nil)
		third := a.Join("z")
		b.Fails(engine.Ahead(second), backend.ErrHeader)
		a.Fails(engine.Ahead(third), backend.ErrHeader)
		if l := a.Line(); l.Header.Understood() == nil || len(l.Members) != 2 {
			t.Fatalf("the line is %+v; want two members, and what a leader needs", l)
		}
	},
}, {
	ID: "L7.fence-limit", Title: "a fence that would let tokens wrap is an error",
	Text:  "Where the election's record has a fence above 2^62, up to 2^64-1, Ahead of the first member and Line fail with ErrHeader: the sum with a position could wrap, and tokens would fall.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a := t.Client()
		m := a.Join("x")
		for _, fence := range []uint64{backend.MaxFence + 1, math.MaxUint64 - m.Position, math.MaxUint64} {
			a.Put(t.Name, fmt.Sprintf(`{"succession":2,"fence":%d}`, fence), nil)
			a.Fails(engine.Ahead(m), backend.ErrHeader)
			a.Fails(engine.Line(t.Name), backend.ErrHeader)
		}
	},
}}
