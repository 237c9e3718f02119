package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// has checks that the record is as said.
func (c *client) has(name, value string, v backend.Version) {
	r := c.get(name)
	if string(r.Value) != value || r.Version != v {
		c.t.fatalf("%s: the record should be %.40q at version %d, and is %.40q at %d", c.name, value, v, r.Value, r.Version)
	}
}

var recordRules = []Rule{{
	ID:    "Records.values",
	Title: "records keep any bytes",
	Text:  "Records keep the empty value, arbitrary bytes and 256 KiB, for the writer at once and for another client soon; a longer value fails with ErrInvalid and changes nothing. Get of a record that is not there has Absent and no error.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		a.has(t.line+"-r", "", backend.Absent)
		var all []byte
		for i := range 256 {
			all = append(all, byte(i))
		}
		var v backend.Version
		var last string
		for _, value := range [][]byte{{}, []byte("x"), all, bytes.Repeat([]byte{0xfe}, backend.MaxRecord)} {
			last = string(value)
			v = a.put(t.line+"-r", last, nil)
			a.has(t.line+"-r", last, v)
			t.poll(t.h.soon(), "another client sees the record", func() bool {
				r := b.get(t.line + "-r")
				return r.Version == v && string(r.Value) == last
			})
		}
		if err := a.putFails(t.line+"-r", strings.Repeat("x", backend.MaxRecord+1), nil); !is(err, backend.ErrInvalid) {
			t.fatalf("Put of too long a value failed with %v; want ErrInvalid", err)
		}
		a.has(t.line+"-r", last, v)
	},
}, {
	ID:    "Records.versions",
	Title: "a record never has the same version twice",
	Text:  "Each write gives the record a positive version that it never had, also a write of the same value and one after a deletion, by either of two clients; Put returns the version that Get then shows.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		seen := make(map[backend.Version]bool)
		for i := range 20 {
			v := a.put(t.line+"-r", "same", nil)
			if v <= 0 || seen[v] {
				t.fatalf("version %d is not positive, or was there before", v)
			}
			seen[v] = true
			a.has(t.line+"-r", "same", v)
			if i%3 == 2 {
				a.do("Delete", func(ctx context.Context, s backend.Session) error { return s.Delete(ctx, t.line+"-r", nil) })
				a.has(t.line+"-r", "", backend.Absent)
			}
			a, b = b, a
		}
	},
}, {
	ID:    "Records.condition",
	Title: "a write is refused where the version is another",
	Text:  "Put and Delete at another version than the record has, at Absent where there is one and at a version where there is none, fail with ErrVersion and change nothing; at the right version, at 0 and without condition they are done. Delete of nothing, without a version, is not an error.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		name := t.line + "-r"
		del := func(v backend.Version) error {
			ctx, cancel := t.within(t.h.soon())
			defer cancel()
			return b.live().Delete(ctx, name, &backend.If{Version: v})
		}
		refused := func(what string, err error) {
			if !is(err, backend.ErrVersion) {
				t.fatalf("%s returned %v; want ErrVersion", what, err)
			}
		}
		refused("Put at a version where there is no record", a.putFails(name, "x", &backend.If{Version: 1}))
		refused("Delete at a version where there is no record", del(1))
		if err := del(0); err != nil {
			t.fatalf("Delete of nothing: %v", err)
		}
		a.has(name, "", backend.Absent)
		old := a.put(name, "one", &backend.If{Version: backend.Absent})
		v := b.put(name, "two", &backend.If{Version: old})
		refused("Put at Absent where there is a record", a.putFails(name, "x", &backend.If{Version: backend.Absent}))
		refused("Put at an old version", a.putFails(name, "x", &backend.If{Version: old}))
		refused("Put at a version to come", a.putFails(name, "x", &backend.If{Version: v + 1}))
		refused("Delete at an old version", del(old))
		refused("Delete at Absent where there is a record", del(backend.Absent))
		a.has(name, "two", v)
		v = a.put(name, "three", &backend.If{})
		if err := del(v); err != nil {
			t.fatalf("Delete at the right version: %v", err)
		}
		b.has(name, "", backend.Absent)
		refused("Put at the version of a deleted record", a.putFails(name, "x", &backend.If{Version: v}))
		a.put(name, "four", &backend.If{Version: backend.Absent})
	},
}, {
	ID:    "Records.one-wins",
	Title: "of those who write on one version exactly one wins",
	Text:  "Five clients put at Absent at once, and then ten times at the version that won: each time exactly one is done, the others fail with ErrVersion, and the record is the winner's.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		cs := t.opened(5)
		name := t.line + "-r"
		at := backend.Absent
		for round := range 11 {
			type outcome struct {
				who string
				v   backend.Version
				err error
			}
			outcomes := make(chan outcome, len(cs))
			for _, c := range cs {
				s := c.live()
				t.spawn(func() {
					v, err := s.Put(t.ctx, name, []byte(c.name), &backend.If{Version: at})
					outcomes <- outcome{c.name, v, err}
				})
			}
			var won []outcome
			for range cs {
				switch o := await(t, outcomes, t.h.soon(), "a conditional Put has not returned"); {
				case o.err == nil:
					won = append(won, o)
				case !is(o.err, backend.ErrVersion):
					t.fatalf("a conditional Put failed with %v; want ErrVersion", o.err)
				}
			}
			if len(won) != 1 {
				t.fatalf("in round %d, %d of five writers on one version won", round, len(won))
			}
			at = won[0].v
			cs[0].do("Get", func(ctx context.Context, s backend.Session) error {
				// Any client: a write that is done is found by the condition, so put on it.
				r, err := s.Get(ctx, name)
				if err == nil && r.Version == at && string(r.Value) != won[0].who {
					t.fatalf("the record at version %d is %q; %s wrote it", at, r.Value, won[0].who)
				}
				return err
			})
		}
	},
}, {
	ID:    "Records.counter",
	Title: "a counter loses nothing",
	Text:  "Four clients add to a counter ten times each, by Get and a Put on the version, trying again after ErrVersion: it ends at forty.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		name := t.line + "-r"
		cs := t.opened(4)
		var done []<-chan error
		for _, c := range cs {
			s := c.live()
			done = append(done, t.async(func() error {
				for added := 0; added < 10; {
					r, err := s.Get(t.ctx, name)
					if err != nil {
						return err
					}
					n, _ := strconv.Atoi(string(r.Value))
					_, err = s.Put(t.ctx, name, []byte(strconv.Itoa(n+1)), &backend.If{Version: r.Version})
					switch {
					case err == nil:
						added++
					case is(err, backend.ErrVersion):
						t.breathe()
					default:
						return err
					}
				}
				return nil
			}))
		}
		for _, d := range done {
			if err := await(t, d, t.h.limit(), "the counting has not come to its end"); err != nil {
				t.fatalf("counting: %v", err)
			}
		}
		v := cs[0].put(t.line+"-after", "", nil) // makes the session fresh
		if got := string(cs[0].get(name).Value); got != "40" {
			t.fatalf("the counter is %s after forty additions (version %d)", got, v)
		}
	},
}, {
	ID:    "Records.list",
	Title: "List shows what is directly under a name",
	Text:  "List returns the full names of the records directly under the name, sorted, each once; neither what lies deeper nor what begins alike, nor what was deleted; nothing for a name that nobody used.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		dir := t.line + "-dir"
		for _, name := range []string{"/b", "/a", "/c/deeper", "/d", "-x/y", "2/z", "/a.b", "/a-b"} {
			a.put(dir+name, "x", nil)
		}
		a.do("Delete", func(ctx context.Context, s backend.Session) error { return s.Delete(ctx, dir+"/d", nil) })
		want := []string{dir + "/a", dir + "/a-b", dir + "/a.b", dir + "/b"}
		list := func(c *client, dir string) (names []string) {
			c.do("List", func(ctx context.Context, s backend.Session) (err error) {
				names, err = s.List(ctx, dir)
				return err
			})
			return names
		}
		// A folder between may count as an empty record where folders are records.
		either := append(slices.Clone(want), dir+"/c")
		if got := list(a, dir); !slices.Equal(got, want) && !slices.Equal(got, either) {
			t.fatalf("List is %v; want %v", got, want)
		}
		t.poll(t.h.soon(), "another client lists the same", func() bool {
			return slices.Equal(list(b, dir), list(a, dir))
		})
		if got := list(b, dir+"-unknown"); len(got) != 0 {
			t.fatalf("List of a name that nobody used is %v", got)
		}
	},
}, {
	ID:    "Records.watch",
	Title: "Watch sees every state that lasts",
	Text:  "Watch after 0, or after a version that the record does not have any more, returns at once with what it now is; after the present version it does not return for half a TTL, and then soon after another client's Put, Delete and Put, each time with what the record then is; a write to another record does not wake it.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		name := t.line + "-r"
		s := b.live()
		watch := func(after backend.Version) (<-chan backend.Record, <-chan error) {
			records := make(chan backend.Record, 1)
			return records, t.async(func() error {
				r, err := s.Watch(t.ctx, name, after)
				if err != nil {
					t.fatalf("Watch: %v", err)
				}
				records <- r
				return nil
			})
		}
		first, _ := watch(0)
		last := await(t, first, t.h.soon(), "Watch after 0 has not returned")
		if last.Version != backend.Absent {
			t.fatalf("Watch after 0 of no record has version %d", last.Version)
		}
		for i, change := range []string{"put", "put", "delete", "put"} {
			records, done := watch(last.Version)
			a.put(t.line+"-other", "x", nil)
			t.steady(t.h.TTL/2, "Watch has returned although the record has not changed", func() bool { return !returned(done) })
			want, value := backend.Absent, ""
			if change == "put" {
				value = fmt.Sprint(i)
				want = a.put(name, value, nil)
			} else {
				a.do("Delete", func(ctx context.Context, s backend.Session) error { return s.Delete(ctx, name, nil) })
			}
			last = await(t, records, t.h.soon(), "Watch has not returned after a "+change)
			if last.Version != want || string(last.Value) != value || last.Name != name {
				t.fatalf("after a %s to version %d, Watch returned %q at version %d", change, want, last.Value, last.Version)
			}
		}
		a.put(name, "missed", nil)
		want := b.put(name, "newest", nil)
		behind, _ := watch(last.Version)
		if r := await(t, behind, t.h.soon(), "Watch after an old version has not returned"); r.Version != want {
			t.fatalf("Watch after an old version returned version %d; the record has %d", r.Version, want)
		}
	},
}, {
	ID:    "Records.watch-last",
	Title: "a slow watcher ends with the newest",
	Text:  "While one client writes a record sixty times without a pause, another follows it by Watch, and from the middle on looks away until the last was written. It never sees an older value after a newer, and sees the last soon.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		name := t.line + "-r"
		s := b.live()
		written, newest := make(chan error), make(chan error, 1)
		t.spawn(func() {
			last, at := -1, backend.Version(0)
			for last < 59 {
				r, err := s.Watch(t.ctx, name, at)
				if err != nil {
					t.fatalf("Watch: %v", err)
				}
				n := -1
				if r.Version != backend.Absent {
					if n, err = strconv.Atoi(string(r.Value)); err != nil {
						t.fatalf("Watch returned the value %q", r.Value)
					}
				}
				if n < last || n == last && r.Version != at && at != 0 {
					t.fatalf("Watch returned value %d after %d", n, last)
				}
				if last < 30 && n >= 30 {
					await(t, written, t.h.limit(), "the writes have not come to their end")
				}
				last, at = n, r.Version
			}
			newest <- nil
		})
		for i := range 60 {
			a.put(name, fmt.Sprint(i), nil)
		}
		close(written)
		await(t, newest, t.h.soon(), "the watcher has not seen the last value")
	},
}, {
	ID:    "Records.watch-cancel",
	Title: "a cancelled Watch or Joined returns soon",
	Text:  "Watch and Joined return the cause of their context soon after that has ended, also when it had ended before the call; Joined returns nil soon after somebody has joined, and at once where somebody stands.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		s := b.live()
		for _, f := range methods(t) {
			if f.name == "Watch" || f.name == "Joined" {
				t.cancels(f.name, s, func(ctx context.Context, s backend.Session) error { return f.call(ctx, s, backend.Member{}) })
			}
		}
		joined := t.async(func() error { return s.Joined(t.ctx, t.line) })
		t.steady(t.h.TTL/10, "Joined has returned although nobody has joined", func() bool { return !returned(joined) })
		a.join("x")
		for range 2 {
			if err := await(t, joined, t.h.soon(), "Joined has not returned although somebody stands in line"); err != nil {
				t.fatalf("Joined: %v", err)
			}
			joined = t.async(func() error { return s.Joined(t.ctx, t.line) })
		}
	},
}, {
	ID:    "Records.lost-answer",
	Title: "a lost answer of Put is not a no",
	Text:  "Where the answer of a conditional Put or Delete is lost after it took effect, the call succeeds or fails with ErrUnavailable within a crash, never with ErrVersion; Get then shows the change.",
	Needs: []Fault{LoseAnswer, Records},
	check: func(t *trial) {
		a := t.client()
		name := t.line + "-r"
		at := backend.Absent
		for i := range 4 {
			value := fmt.Sprint(i)
			a.live()
			a.loseAnswer()
			ctx, cancel := t.within(t.h.crash())
			v, err := a.live().Put(ctx, name, []byte(value), &backend.If{Version: at})
			cancel()
			if err != nil && !is(err, backend.ErrUnavailable) {
				t.fatalf("Put with a lost answer failed with %v; want ErrUnavailable", err)
			}
			r := a.get(name)
			if string(r.Value) != value || err == nil && r.Version != v {
				t.fatalf("after Put of %q with a lost answer, Get shows %q at version %d (Put returned %d, %v)", value, r.Value, r.Version, v, err)
			}
			at = r.Version
		}
		a.loseAnswer()
		ctx, cancel := t.within(t.h.crash())
		defer cancel()
		if err := a.live().Delete(ctx, name, &backend.If{Version: at}); err != nil && !is(err, backend.ErrUnavailable) {
			t.fatalf("Delete with a lost answer failed with %v; want ErrUnavailable", err)
		}
		a.has(name, "", backend.Absent)
	},
}, {
	ID:    "Records.guard",
	Title: "a guarded write needs the member to stand",
	Text:  "Put and Delete on condition of a member are done while it stands, first or not, also by another client; when it has left they fail with ErrNotMember and change nothing, with the right version too.",
	Needs: []Fault{Records},
	check: func(t *trial) {
		a, b := t.client(), t.client()
		name := t.line + "-r"
		front, m := a.join("front"), a.join("x")
		v := a.put(name, "one", &backend.If{Member: m})
		v = a.put(name, "two", &backend.If{Member: m, Version: v})
		v = b.put(name, "three", &backend.If{Member: m, Version: v})
		if err := a.putFails(name, "x", &backend.If{Member: m, Version: v + 1}); !is(err, backend.ErrVersion) {
			t.fatalf("a guarded Put at another version failed with %v; want ErrVersion", err)
		}
		a.leave(m)
		for _, c := range []*client{a, b} {
			for _, at := range []backend.Version{0, v} {
				cond := &backend.If{Member: m, Version: at}
				if err := c.putFails(name, "late", cond); !is(err, backend.ErrNotMember) {
					t.fatalf("Put guarded by a member that left failed with %v; want ErrNotMember", err)
				}
				ctx, cancel := t.within(t.h.soon())
				err := c.live().Delete(ctx, name, cond)
				cancel()
				if !errors.Is(err, backend.ErrNotMember) {
					t.fatalf("Delete guarded by a member that left returned %v; want ErrNotMember", err)
				}
			}
		}
		a.has(name, "three", v)
		b.put(name, "four", &backend.If{Member: front})
	},
}}
