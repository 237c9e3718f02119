package spread_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/record"
	"github.com/succession-dev/succession/spread"
)

// Elections live on all clusters, each on one, whichever order the clusters are listed in.
func TestElectionsAreSpread(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all := names(30)
		w.process("p", "a", "b", "c").run(all...)
		w.process("q", "c", "a", "b").run(all...)
		counts := make(map[string]int)
		for _, name := range all {
			w.until("somebody leads "+name, time.Minute, func() bool { return w.leader(name) != "" })
		}
		time.Sleep(ttl)
		for _, name := range all {
			at := w.at(name)
			counts[at]++
			if n := len(w.c[at].Members(name)); n != 2 {
				t.Errorf("%d stand in the line of %s, want 2", n, name)
			}
		}
		for at := range w.c {
			if counts[at] < 5 {
				t.Errorf("%d of %d elections live on %s", counts[at], len(all), at)
			}
		}
	}, "a", "b", "c")
}

// A change of the list moves no election that has been used; new ones live on the new cluster, too.
// Of processes with different lists, one leads, and one that does not know the cluster says so.
func TestListChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		used, unused := names(60)[:30], names(60)[30:]
		old := w.process("old", "a", "b")
		stop := old.run(used...)
		for _, name := range used {
			w.until("somebody leads "+name, time.Minute, func() bool { return w.leader(name) != "" })
		}
		before := make(map[string]string)
		for _, name := range used {
			before[name] = w.at(name)
		}
		next := w.process("next", "a", "b", "c")
		next.run(append(used, unused...)...)
		stop()
		moved := 0
		for _, name := range used {
			w.until("next leads "+name, time.Minute, func() bool { return w.leader(name) == "next" })
			if at := w.at(name); at != before[name] {
				t.Errorf("%s has moved from %s to %s", name, before[name], at)
			}
			if _, falls, err := next.Where(w.ctx, name); err != nil {
				t.Error(err)
			} else if falls != before[name] {
				moved++
				if falls != "c" {
					t.Errorf("%s falls to %s after c was added, and to %s before", name, falls, before[name])
				}
			}
		}
		if moved == 0 {
			t.Error("no name falls to the new cluster: the test shows nothing")
		}
		onNew := 0
		for _, name := range unused {
			w.until("next leads "+name, time.Minute, func() bool { return w.leader(name) == "next" })
			if w.at(name) != "c" {
				continue
			}
			onNew++
			_, err := elect.New(old.For(name), name, nil).Campaign(w.ctx)
			want(t, err, backend.ErrInvalid, `"c" is not there`, "newest list")
		}
		if onNew == 0 {
			t.Error("no new election lives on the new cluster")
		}
	}, "a", "b", "c")
}

// A process asks its source again for a cluster that it does not know.
func TestListIsReadAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.process("first", "a", "b")
		if err := uses(w.ctx, first, "x"); err != nil {
			t.Fatal(err)
		}
		later := w.process("later", "a", "b", "c")
		name := ""
		for _, n := range names(100) {
			if _, falls, _ := later.Where(w.ctx, n); falls == "c" {
				name = n
			}
		}
		if err := uses(w.ctx, later, name); err != nil {
			t.Fatal(err)
		}
		reads := 0
		p := &process{w: w, name: "reader", clients: make(map[string][]*memory.Backend)}
		b := spread.New(func(context.Context) ([]spread.Cluster, error) {
			reads++
			return list([]string{"a", "b", "c"}[:min(reads+1, 3)]...), nil
		}, &spread.Options{Open: p.open})
		defer b.Close()
		if err := uses(w.ctx, b, name); err != nil || reads != 2 {
			t.Errorf("Session: %v, after the list was read %d times; want 2", err, reads)
		}
	}, "a", "b", "c")
}

// Lists that cannot be right are refused, and nobody leads by them.
func TestWrongLists(t *testing.T) {
	for _, tt := range []struct {
		name  string
		list  []string
		words string
	}{
		{"two are exchanged", []string{"a=b", "b=a"}, "is the cluster"},
		{"one is missing", []string{"a"}, `"b" is not there`},
		{"the other one is missing", []string{"b"}, `"a" is not there`},
		{"one is another cluster", []string{"a", "b=z"}, "lost the record"},
		{"one is of other clusters", []string{"a", "b", "x"}, "of the list that begins with"},
		{"two lists are one", []string{"a", "b", "x", "y"}, "of the list that begins with"},
		{"one has another name", []string{"a", "e=b"}, ""},
		{"there are two lists", []string{"b", "z"}, `"a" is not there`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for _, b := range []*process{w.process("p", "a", "b"), w.process("q", "x", "y")} {
					for _, name := range names(20) {
						if err := uses(w.ctx, b, name); err != nil {
							t.Fatal(err)
						}
					}
				}
				b := w.process("wrong", tt.list...)
				refused := 0
				for i, name := range append(names(20), "new-1", "new-2", "new-3", "new-4", "new-5", "new-6", "new-7") {
					h, _, err := w.process("looks", "a", "b").Where(w.ctx, name)
					if err != nil {
						t.Fatal(err)
					}
					term, err := elect.New(b.For(name), name, nil).Campaign(w.ctx)
					if err == nil {
						if at := w.at(name); i < 20 && at != h.At {
							t.Errorf("%s is led on %s, and lives on %s", name, at, h.At)
						}
						if h.At == "" && i < 20 {
							t.Errorf("%s has no home", name)
						}
						term.Resign(w.ctx)
						continue
					}
					refused++
					want(t, err, backend.ErrInvalid, tt.words)
				}
				if refused == 0 {
					t.Error("nothing was refused")
				}
			}, "a", "b", "x", "y", "z")
		})
	}
}

// Lists that are not lists are refused.
func TestListsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		list  []spread.Cluster
		words string
	}{
		{nil, "empty"},
		{list("a", "a"), "twice"},
		{list("a", "b=a"), "same URL"},
		{list("a/b"), "slash"},
		{list(""), "empty"},
		{[]spread.Cluster{{Name: "a", URL: "here"}}, "scheme"},
		{[]spread.Cluster{{Name: "a", URL: "migrate:?from=memory:a&to=memory:b"}}, "not one coordinator"},
		{[]spread.Cluster{{Name: "a", URL: "spread:x"}}, "not one coordinator"},
	} {
		b := spread.New(spread.List(tt.list...), nil)
		err := uses(t.Context(), b, "x")
		want(t, err, backend.ErrInvalid, tt.words)
		b.Close()
	}
}

// Many processes start at one moment, with two lists, and answers are lost: each election gets one
// home, and one leader.
func TestFirstUse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		founds := w.process("founds", "a", "b")
		if err := uses(w.ctx, founds, "first"); err != nil {
			t.Fatal(err)
		}
		all := names(10)
		for i := range 12 {
			clusters := []string{"a", "b"}
			if i%2 == 1 {
				clusters = []string{"a", "b", "c", "d"}
			}
			p := w.process("p", clusters...)
			open := func(url string) (backend.Backend, error) {
				b, err := p.open(url)
				if m := b.(*memory.Backend); i%3 == 0 {
					m.LoseAnswer(memory.OpPut)
				} else {
					m.Delay(time.Duration(i)*time.Millisecond, time.Millisecond)
				}
				return b, err
			}
			p.Backend.Close()
			p.Backend = spread.New(spread.List(list(clusters...)...), &spread.Options{Open: open})
			defer p.Backend.Close()
			for _, name := range all {
				w.wg.Go(func() {
					ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
					defer cancel()
					err := elect.New(p.For(name), name, nil).Run(ctx, func(ctx context.Context, t *elect.Term) error {
						w.began(p, name, t)
						time.Sleep(time.Second)
						w.ended(name, t)
						return nil
					})
					if err != nil && !(len(clusters) == 2 && errors.Is(err, backend.ErrInvalid)) {
						t.Errorf("campaign for %s with %v: %v", name, clusters, err)
					}
				})
			}
		}
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			for _, name := range all {
				w.at(name)
			}
		}
		w.wg.Go(func() {}) // the campaigns have ended, as their minute has passed
	}, "a", "b", "c", "d")
}

// While one cluster is out, the elections of the other go on, are handed over, and are found by
// processes that start meanwhile. When it is back, so are its elections.
func TestOutage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all := names(20)
		p := w.process("p", "a", "b")
		stop := p.run(all...)
		w.process("q", "a", "b").run(all...)
		for _, name := range all {
			w.until("p leads "+name, time.Minute, func() bool { return w.leader(name) != "" })
		}
		time.Sleep(time.Second)
		homes, tokens := make(map[string]string), make(map[string]uint64)
		for _, name := range all {
			homes[name], tokens[name] = w.at(name), w.token(name)
		}
		w.c["a"].Pause()
		time.Sleep(3 * ttl)
		for _, name := range all {
			leads := w.leader(name) != ""
			if on := homes[name] == "b"; leads != on || on && tokens[name] != w.token(name) {
				t.Errorf("%s lives on %s; leads: %v, token %d after %d", name, homes[name], leads, w.token(name), tokens[name])
			}
		}
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		r := w.process("r", "a", "b")
		r.run(all...)
		for _, name := range all {
			if homes[name] == "b" {
				w.until("another leads "+name, time.Minute, func() bool { l := w.leader(name); return l == "q" || l == "r" })
			}
		}
		w.c["a"].Resume()
		<-stopped
		for _, name := range all {
			w.until("somebody leads "+name, 2*time.Minute, func() bool { return w.leader(name) != "" })
			if at := w.at(name); at != homes[name] {
				t.Errorf("%s lives on %s, and did on %s", name, at, homes[name])
			}
		}
	}, "a", "b")
}

// An election without a home gets none while the founder that would keep it is out; and no list is
// founded while one of its clusters is.
func TestFirstUseNeedsItsFounder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.c["b"].Pause()
		p := w.process("p", "a", "b")
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		err := uses(ctx, p, "x")
		want(t, err, backend.ErrUnavailable, "b:")
		if r := w.c["a"].Record(".spread"); r.Version != backend.Absent {
			t.Errorf("a list was founded whose clusters have not all answered: %s", r.Value)
		}
		w.c["b"].Resume()
		if err := uses(w.ctx, p, "x"); err != nil {
			t.Fatal(err)
		}
		w.c["b"].Pause()
		led := 0
		q := w.process("q", "a", "b")
		for _, name := range names(10) {
			ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
			if err := uses(ctx, q, name); err == nil {
				led++
			} else {
				want(t, err, backend.ErrUnavailable)
			}
			cancel()
		}
		if led == 0 || led == 10 {
			t.Errorf("%d of 10 elections got a home while one of two founders was out", led)
		}
	}, "a", "b")
}

// An election that was in use on one cluster is put there.
func TestPut(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		for _, name := range names(4) {
			_, falls, err := p.Where(w.ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			other := map[string]string{"a": "b", "b": "a"}[falls]
			for range 2 {
				if err := p.Put(w.ctx, name, other); err != nil {
					t.Error(err)
				}
			}
			want(t, p.Put(w.ctx, name, falls), spread.ErrRefused, "lives on "+other)
			want(t, p.Put(w.ctx, name, "c"), backend.ErrInvalid, `"c"`)
			h, _, err := p.Where(w.ctx, name)
			if err != nil || h.At != other {
				t.Errorf("Where: %+v, %v; want %s", h, err, other)
			}
		}
	}, "a", "b")
}

// What looks changes nothing.
func TestWhereFoundsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		if h, falls, err := p.Where(w.ctx, "x"); err != nil || h != (spread.Home{}) || falls == "" {
			t.Errorf("Where: %+v, %q, %v", h, falls, err)
		}
		for name, c := range w.c {
			if r := c.Record(".spread"); r.Version != backend.Absent {
				t.Errorf("%s has the record %s", name, r.Value)
			}
		}
	}, "a", "b")
}

// The backend of one election is for that one; its records stand beside it.
func TestFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process("p", "a", "b")
		b := p.For("reports")
		s, err := b.Session(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Join(w.ctx, "other", "x", "")
		want(t, err, backend.ErrInvalid, `For("other")`)
		_, err = s.JoinShared(w.ctx, "reports", "x", "")
		want(t, err, errors.ErrUnsupported)
		_, err = s.Append(w.ctx, "reports", "x")
		want(t, err, errors.ErrUnsupported)
		_, err = p.Session(w.ctx)
		want(t, err, backend.ErrInvalid, "For")
		_, err = lock.NewRWMutex(p, "reports", nil).RLock(w.ctx) // which wraps the backend
		want(t, err, errors.ErrUnsupported, "shared")

		term, err := elect.New(b, "reports", nil).Campaign(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		position := record.New(p.For("reports"), "reports-position", record.Text())
		if _, err := position.SetAs(w.ctx, term, 0, "7"); err != nil {
			t.Error(err)
		}
		if e, err := position.Get(w.ctx); err != nil || e.Value != "7" {
			t.Errorf("the record is %+v, %v", e, err)
		}
		if err := term.Resign(w.ctx); err != nil {
			t.Error(err)
		}
		one := memory.New(nil).Client("one")
		defer one.Close()
		if backend.For(one, "x") != backend.Backend(one) {
			t.Error("For of one cluster is not that")
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		err = uses(w.ctx, p, "reports")
		want(t, err, backend.ErrClosed)
		if at := w.at("reports"); at != "" {
			t.Errorf("somebody stands on %s", at)
		}
	}, "a", "b")
}

// The record that all processes follow is made with the list of clusters: on a coordinator where names are nobody's, another
// could make it later, and keep operators from writing it.
func TestMovesAreFoundedWithTheList(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		if err := uses(w.ctx, w.process("p", "a", "b"), "first"); err != nil {
			t.Fatal(err)
		}
		for name, c := range w.c {
			b := c.Client("looks")
			defer b.Close()
			s, err := b.Session(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := s.Get(w.ctx, ".spread-moves"); err != nil || r.Version == backend.Absent {
				t.Errorf("on %s it is %+v, %v", name, r, err)
			}
		}
	}, "a", "b")
}
