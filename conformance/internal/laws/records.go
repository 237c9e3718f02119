package laws

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

var recordRules = []engine.Rule{{
	ID: "Records.values", Title: "records keep any bytes",
	Text:  "Records keep the empty value, arbitrary bytes and 256 KiB, for the writer at once and for another client soon; a longer value fails with ErrInvalid and changes nothing. Get of a record that is not there has Absent and no error.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		a.Has(t.Name+"-r", "", backend.Absent)
		var all []byte
		for i := range 256 {
			all = append(all, byte(i))
		}
		var v backend.Version
		var last string
		for _, value := range [][]byte{{}, []byte("x"), all, bytes.Repeat([]byte{0xfe}, backend.MaxRecord)} {
			last = string(value)
			v = a.Put(t.Name+"-r", last, nil)
			a.Has(t.Name+"-r", last, v)
			t.Eventually(t.Soon(), "another client sees the record", func() bool {
				r := b.Get(t.Name + "-r")
				return r.Version == v && string(r.Value) == last
			})
		}
		a.Fails(engine.Put(t.Name+"-r", strings.Repeat("x", backend.MaxRecord+1), nil), backend.ErrInvalid)
		a.Has(t.Name+"-r", last, v)
	},
}, {
	ID: "Records.versions", Title: "a record never has the same version twice",
	Text:  "Each write gives the record a positive version that it never had, also a write of the same value and one after a deletion, by either of two clients; Put returns the version that Get then shows.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		seen := make(map[backend.Version]bool)
		for i := range 20 {
			v := a.Put(t.Name+"-r", "same", nil)
			if v <= 0 || seen[v] {
				t.Never("version %d is not positive, or was there before", v)
			}
			seen[v] = true
			a.Has(t.Name+"-r", "same", v)
			if i%3 == 2 {
				a.Do(engine.Delete(t.Name+"-r", nil))
				a.Has(t.Name+"-r", "", backend.Absent)
			}
			a, b = b, a
		}
	},
}, {
	ID: "Records.condition", Title: "a write is refused where the version is another",
	Text:  "Put and Delete at another version than the record has, at Absent where there is one and at a version where there is none, fail with ErrVersion and change nothing; at the right version, at 0 and without condition they are done. Delete of nothing, without a version or at Absent, is not an error.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		name := t.Name + "-r"
		a.Fails(engine.Put(name, "x", &backend.If{Version: 1}), backend.ErrVersion) // Put at a version where there is no record
		b.Fails(engine.Delete(name, &backend.If{Version: 1}), backend.ErrVersion)   // Delete at a version where there is no record
		b.Do(engine.Delete(name, &backend.If{}))
		b.Do(engine.Delete(name, &backend.If{Version: backend.Absent}))
		a.Has(name, "", backend.Absent)
		old := a.Put(name, "one", &backend.If{Version: backend.Absent})
		v := b.Put(name, "two", &backend.If{Version: old})
		a.Fails(engine.Put(name, "x", &backend.If{Version: backend.Absent}), backend.ErrVersion) // Put at Absent where there is a record
		a.Fails(engine.Put(name, "x", &backend.If{Version: old}), backend.ErrVersion)            // Put at an old version
		a.Fails(engine.Put(name, "x", &backend.If{Version: v + 1}), backend.ErrVersion)          // Put at a version to come
		b.Fails(engine.Delete(name, &backend.If{Version: old}), backend.ErrVersion)              // Delete at an old version
		b.Fails(engine.Delete(name, &backend.If{Version: backend.Absent}), backend.ErrVersion)   // Delete at Absent where there is a record
		a.Has(name, "two", v)
		v = a.Put(name, "three", &backend.If{})
		b.Do(engine.Delete(name, &backend.If{Version: v}))
		b.Has(name, "", backend.Absent)
		a.Fails(engine.Put(name, "x", &backend.If{Version: v}), backend.ErrVersion) // Put at the version of a deleted record
		a.Put(name, "four", &backend.If{Version: backend.Absent})
	},
}, {
	ID: "Records.one-wins", Title: "of those who write on one version exactly one wins",
	Text:  "Five clients put at Absent at once, and then ten times at the version that won: each time exactly one is done, the others fail with ErrVersion, and the record is the winner's.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(5)
		name := t.Name + "-r"
		at := backend.Absent
		for round := range 11 {
			versions, calls := make([]backend.Version, len(cs)), make([]*engine.Call, len(cs))
			for i, c := range cs {
				s := c.Live()
				calls[i] = t.Go("a conditional Put", func() (err error) {
					versions[i], err = s.Put(t.Ctx, name, []byte(c.Name), &backend.If{Version: at})
					return err
				})
			}
			var won []int
			for i, call := range calls {
				if call.Returns(t.Soon(), nil, backend.ErrVersion) == nil {
					won = append(won, i)
				}
			}
			if len(won) != 1 {
				t.Never("in round %d, %d of five writers on one version won", round, len(won))
			}
			at = versions[won[0]]
			winner := cs[won[0]].Name
			// This Get may be stale, so it checks only the value. The next round checks the version,
			// by its condition.
			if r := cs[0].Get(name); r.Version == at && string(r.Value) != winner {
				t.Never("the record at version %d is %q; %s wrote it", at, r.Value, winner)
			}
		}
	},
}, {
	ID: "Records.counter", Title: "a counter loses nothing",
	Text:  "Four clients add to a counter ten times each, by Get and a Put on the version, trying again after ErrVersion: it ends at forty.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		name := t.Name + "-r"
		cs := t.Clients(4)
		var calls []*engine.Call
		for _, c := range cs {
			s := c.Live()
			calls = append(calls, t.Go("counting", func() error {
				for added := 0; added < 10; {
					r, err := s.Get(t.Ctx, name)
					if err != nil {
						return err
					}
					n, _ := strconv.Atoi(string(r.Value))
					_, err = s.Put(t.Ctx, name, []byte(strconv.Itoa(n+1)), &backend.If{Version: r.Version})
					switch {
					case err == nil:
						added++
					case engine.Is(err, backend.ErrVersion):
						t.Pass(t.Tick(), "before the next try")
					default:
						return err
					}
				}
				return nil
			}))
		}
		for _, call := range calls {
			call.Returns(t.Limit())
		}
		v := cs[0].Put(t.Name+"-after", "", nil) // makes the session fresh
		if got := string(cs[0].Get(name).Value); got != "40" {
			t.Fatalf("the counter is %s after forty additions (version %d)", got, v)
		}
	},
}, {
	ID: "Records.churn", Title: "a record that is made anew is another one",
	Text:  "Five clients make a record, write it and delete it, each time on condition of what they have read, with the same values again and again: of those who change one version exactly one is done, whatever came between its reading and its writing.",
	Needs: []engine.Fault{engine.Records}, Check: churn,
}, {
	ID: "Records.fresh", Title: "after a Refresh a client reads what others have written",
	Text:  "Three clients in turn write a record, forty times in all, delete it now and then, join the line and leave it. As soon as each call has returned, the next client's Refresh, and then its Get, List and Line, show what is there.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		cs := t.Clients(3)
		name := t.Name + "-d/r"
		for i := range 40 {
			a, b := cs[i%3], cs[(i+1)%3]
			want := backend.Absent
			if i%8 == 7 {
				a.Do(engine.Delete(name, nil))
			} else {
				want = a.Put(name, fmt.Sprint(i), nil)
			}
			b.Refresh()
			if got := b.Get(name).Version; got != want {
				t.Never("the record has version %d, as %s was told; after a Refresh %s reads version %d", want, a.Name, b.Name, got)
			}
			if i%8 < 6 {
				continue
			}
			m := a.Join("fresh")
			b.Refresh()
			if got := b.List(t.Name + "-d"); len(got) > 0 != (want != backend.Absent) {
				t.Never("at version %d %s lists %q", want, b.Name, got)
			}
			if !b.Stands(m) {
				t.Never("%s has joined, and after a Refresh %s does not see it", a.Name, b.Name)
			}
			a.Leave(m)
			b.Refresh()
			if b.Stands(m) {
				t.Never("%s has left, and after a Refresh %s sees it", a.Name, b.Name)
			}
		}
	},
}, {
	ID: "Records.list", Title: "List and ReadAll show what is directly under a name",
	Text:  "List returns the full names of the records directly under the name, sorted, each once; neither what lies deeper nor what begins alike, nor what was deleted; nothing for a name that nobody used. ReadAll returns the same records, each as Get does.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		dir := t.Name + "-dir"
		for _, name := range []string{"/b", "/a", "/c/deeper", "/d", "-x/y", "2/z", "/a.b", "/a-b"} {
			a.Put(dir+name, "x", nil)
		}
		a.Do(engine.Delete(dir+"/d", nil))
		want := []string{dir + "/a", dir + "/a-b", dir + "/a.b", dir + "/b"}
		// Where folders are records, dir/c may be listed as an empty record.
		either := append(slices.Clone(want), dir+"/c")
		if got := a.List(dir); !slices.Equal(got, want) && !slices.Equal(got, either) {
			t.Fatalf("List is %v; want %v", got, want)
		}
		t.Eventually(t.Soon(), "another client lists the same", func() bool {
			return slices.Equal(b.List(dir), a.List(dir))
		})
		if got := b.List(dir + "-unknown"); len(got) != 0 {
			t.Fatalf("List of a name that nobody used is %v", got)
		}
		b.Do(engine.ReadAll(dir))
		a.Put(dir+"/a", "another", nil)
		a.Put(dir+"/empty", "", nil)
		b.Refresh()
		var names []string
		for _, r := range b.Do(engine.ReadAll(dir)).([]backend.Record) {
			names = append(names, r.Name)
			if now := b.Get(r.Name); !bytes.Equal(r.Value, now.Value) || r.Version != now.Version {
				t.Fatalf("ReadAll has %q at version %d for %s, and Get %q at version %d", r.Value, r.Version, r.Name, now.Value, now.Version)
			}
		}
		if got := b.List(dir); !slices.Equal(names, got) {
			t.Fatalf("ReadAll has %v, and List %v", names, got)
		}
		if got := b.Do(engine.ReadAll(dir + "-unknown")).([]backend.Record); len(got) != 0 {
			t.Fatalf("ReadAll of a name that nobody used is %v", got)
		}
	},
}, {
	ID: "Records.list-churn", Title: "records can be listed while they come and go",
	Text:  "A client makes and deletes the only record under a name, fifty times. Meanwhile another lists what is there, and reads it, again and again: each call succeeds, and shows that record or none.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		dir := t.Name + "-dir"
		only := dir + "/r"
		churn := t.Go("the churn", func() error {
			for range 50 {
				a.Put(only, "x", nil)
				a.Do(engine.Delete(only, nil))
			}
			return nil
		})
		for !churn.Returned() {
			if got := b.List(dir); len(got) > 0 && !slices.Equal(got, []string{only}) {
				t.Fatalf("List is %v", got)
			}
			for _, r := range b.Do(engine.ReadAll(dir)).([]backend.Record) {
				if r.Name != only || string(r.Value) != "x" {
					t.Fatalf("ReadAll has %q for %s", r.Value, r.Name)
				}
			}
		}
		churn.Returns(t.Limit())
	},
}, {
	ID: "Records.watch", Title: "Watch sees every state that lasts",
	Text:  "Watch after 0, or after a version that the record does not have any more, returns at once with what it now is; after the present version it does not return for half a TTL, and then soon after another client's Put, Delete and Put, each time with what the record then is; a write to another record does not wake it.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		name := t.Name + "-r"
		s := b.Live()
		var last backend.Record
		watch := func(after backend.Version) *engine.Call {
			return t.Go("Watch", func() (err error) {
				last, err = s.Watch(t.Ctx, name, after)
				return err
			})
		}
		watch(0).Returns(t.Soon())
		if last.Version != backend.Absent {
			t.Fatalf("Watch after 0 of no record has version %d", last.Version)
		}
		for i, change := range []string{"put", "put", "delete", "put"} {
			watching := watch(last.Version)
			a.Put(t.Name+"-other", "x", nil)
			t.Always(t.TTL/2, "Watch has returned although the record has not changed", func() bool { return !watching.Returned() })
			want, value := backend.Absent, ""
			if change == "put" {
				value = fmt.Sprint(i)
				want = a.Put(name, value, nil)
			} else {
				a.Do(engine.Delete(name, nil))
			}
			watching.Returns(t.Soon())
			if last.Version != want || string(last.Value) != value || last.Name != name {
				t.Never("after a %s to version %d, Watch returned %q at version %d", change, want, last.Value, last.Version)
			}
		}
		a.Put(name, "missed", nil)
		want := b.Put(name, "newest", nil)
		watch(last.Version).Returns(t.Soon())
		if last.Version != want {
			t.Fatalf("Watch after an old version returned version %d; the record has %d", last.Version, want)
		}
	},
}, {
	ID: "Records.watch-last", Title: "a slow watcher ends with the newest",
	Text:  "While one client writes a record sixty times without a pause, another follows it by Watch, and from the middle on looks away until the last was written. It never sees an older value after a newer, and sees the last soon.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		name := t.Name + "-r"
		s := b.Live()
		written := make(chan error)
		seen := t.Go("seeing the last value", func() error {
			last, at := -1, backend.Version(0)
			for last < 59 {
				r, err := s.Watch(t.Ctx, name, at)
				if err != nil {
					t.Fatalf("Watch: %v", err)
				}
				n := -1
				if r.Version != backend.Absent {
					if n, err = strconv.Atoi(string(r.Value)); err != nil {
						t.Never("Watch returned the value %q", r.Value)
					}
				}
				if n < last || n == last && r.Version != at && at != 0 {
					t.Never("Watch returned value %d after %d", n, last)
				}
				if last < 30 && n >= 30 {
					engine.Await(t, written, t.Limit(), "the writes have not come to their end")
				}
				last, at = n, r.Version
			}
			return nil
		})
		for i := range 60 {
			a.Put(name, fmt.Sprint(i), nil)
		}
		close(written)
		seen.Returns(t.Soon())
	},
}, {
	ID: "Records.watch-cancel", Title: "a cancelled Watch or WatchLine returns soon",
	Text:  "Watch and WatchLine return the cause of their context soon after that has ended, also when it had ended before the call.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		b := t.Client()
		for _, op := range []engine.Op{engine.WatchLine(t.Name, backend.Line{}), engine.Watch(t.Name+"-never", backend.Absent)} {
			cancels(t, b, op)
		}
	},
}, {
	ID: "Records.lost-answer", Title: "a lost answer of Put is not a no",
	Text:  "Where the answer of a conditional Put or Delete is lost after it took effect, the call succeeds or fails with ErrUnavailable within a crash, never with ErrVersion; after a Refresh Get shows the change.",
	Needs: []engine.Fault{engine.LoseAnswer, engine.Records}, Check: func(t *engine.Trial) {
		a := t.Client()
		// It has a folder of its own, which is there. Otherwise a driver may send a write twice,
		// and it is the first, refused one whose answer is lost: because there is no folder, or
		// because of a deletion beside the record.
		name := t.Name + "-d/r"
		a.Put(t.Name+"-d/first", "", nil)
		at := backend.Absent
		for i := range 4 {
			value := fmt.Sprint(i)
			v, err := a.Loses(engine.Put(name, value, &backend.If{Version: at}), nil, backend.ErrUnavailable)
			a.Refresh()
			r := a.Get(name)
			wrong := string(r.Value) != value || err == nil && r.Version != v
			if wrong && err != nil { // it may never have been sent
				t.Fatalf("after Put of %q with a lost answer, Get shows %q at version %d (%v)", value, r.Value, r.Version, err)
			}
			if wrong {
				t.Never("after Put of %q with a lost answer, Get shows %q at version %d (Put returned %d, %v)", value, r.Value, r.Version, v, err)
			}
			at = r.Version
		}
		a.Loses(engine.Delete(name, &backend.If{Version: at}), nil, backend.ErrUnavailable)
		a.Refresh()
		a.Has(name, "", backend.Absent)
	},
}, {
	ID: "Records.guard", Title: "a guarded write needs the member to stand",
	Text:  "Put and Delete on condition of a member are done while it stands, first or not, also by another client; when it has left they fail with ErrNotMember and change nothing, with the right version too.",
	Needs: []engine.Fault{engine.Records}, Check: func(t *engine.Trial) {
		a, b := t.Client(), t.Client()
		name := t.Name + "-r"
		front, m := a.Join("front"), a.Join("x")
		v := a.Put(name, "one", &backend.If{Member: m})
		v = a.Put(name, "two", &backend.If{Member: m, Version: v})
		v = b.Put(name, "three", &backend.If{Member: m, Version: v})
		a.Fails(engine.Put(name, "x", &backend.If{Member: m, Version: v + 1}), backend.ErrVersion)
		a.Leave(m)
		for _, c := range []*engine.Client{a, b} {
			for _, at := range []backend.Version{0, v} {
				cond := &backend.If{Member: m, Version: at}
				c.Fails(engine.Put(name, "late", cond), backend.ErrNotMember)
				c.Fails(engine.Delete(name, cond), backend.ErrNotMember)
			}
		}
		a.Has(name, "three", v)
		b.Put(name, "four", &backend.If{Member: front})
		b.Do(engine.Delete(name, &backend.If{Member: front}))
		if r := b.Get(name); r.Version != backend.Absent {
			t.Fatalf("a Delete on condition of a member that stands has left %q", r.Value)
		}
	},
}, {
	ID: "Records.held", Title: "a write at a version that comes late is refused",
	Text:  "A request is held back on its way of a Put at the version that a record has, of a Put at Absent where there is none, and of a Delete at a version. Another client writes the record, or deletes what the Put at Absent has made. Then the request arrives: the record stays as it is for half a TTL. So it is with each request that the call sends.",
	Needs: []engine.Fault{engine.Records, engine.HoldBack}, Check: func(t *engine.Trial) {
		b := t.Client()
		for i, write := range []func(name string, at backend.Version) engine.Op{
			func(name string, at backend.Version) engine.Op {
				return engine.Put(name, "late", &backend.If{Version: at})
			},
			func(name string, _ backend.Version) engine.Op {
				return engine.Put(name, "late", &backend.If{Version: backend.Absent})
			},
			func(name string, at backend.Version) engine.Op { return engine.Delete(name, &backend.If{Version: at}) },
		} {
			absent := i == 1
			for skip := 0; ; skip++ {
				a := t.Client()
				name := fmt.Sprintf("%s-%d-%d", t.Name, i, skip)
				at := backend.Absent
				if !absent {
					at = a.Put(name, "first", nil)
				}
				call, arrives, held := a.HoldsBack(t.Ctx, write(name, at), skip)
				if !held {
					break
				}
				done := call.Returns(t.Crash(), nil, backend.ErrUnavailable) == nil
				want := backend.Absent
				if absent && done {
					b.Do(engine.Delete(name, nil))
				} else {
					want = b.Put(name, "second", nil)
				}
				arrives()
				t.Always(t.TTL/2, "a write at a version that the record does not have any more was done", func() bool {
					b.Refresh()
					return b.Get(name).Version == want
				})
			}
		}
	},
}}
