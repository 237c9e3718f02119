package spread_test

import (
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

// Who only looks at an election that nobody has used gives it no home, and writes nothing on any cluster: neither into a
// list that is not founded, nor onto a cluster that was added to one. So an operator can still put the election where it is in use. Then
// the observer sees who leads there.
func TestLookingGivesNoHome(t *testing.T) {
	for name, founded := range map[string]bool{"no list": false, "a list that grows": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				if founded {
					if err := uses(w.ctx, w.process("founder", "a"), "another"); err != nil {
						t.Fatal(err)
					}
				}
				records := func() (all int) {
					for _, c := range w.c {
						s, err := c.Client("reader").Session(w.ctx)
						if err != nil {
							t.Fatal(err)
						}
						names, err := s.Survey(w.ctx)
						if err != nil {
							t.Fatal(err)
						}
						all += len(names)
					}
					return all
				}
				was := records()
				p := w.process("p", "a", "b")
				_, falls, err := p.Where(w.ctx, election)
				if err != nil || founded && falls != "b" {
					t.Fatalf("it falls to %s: %v", falls, err)
				}
				s, err := p.For(election).Session(w.ctx)
				if err != nil {
					t.Fatal(err)
				}
				if r, err := s.Get(w.ctx, election+"-position"); err != nil || r.Version != backend.Absent {
					t.Errorf("the record is %+v, %v", r, err)
				}
				e := elect.New(p, election, nil)
				if st, line, err := e.Line(w.ctx); err != nil || !st.Vacant() || len(line) != 0 {
					t.Errorf("the line is %v, %v", line, err)
				}
				leaders := make(chan string, 10)
				w.wg.Go(func() {
					for st := range e.Observe(w.ctx) {
						leaders <- st.Leader.ID
					}
				})
				if id := <-leaders; id != "" {
					t.Errorf("%s leads", id)
				}
				if err := p.Finish(w.ctx, election, nil); err != nil {
					t.Error(err)
				}
				time.Sleep(3 * ttl) // the observer looks again
				if n := records(); n != was {
					t.Errorf("there are %d records, and were %d", n, was)
				}
				if err := p.Put(w.ctx, election, other(falls)); err != nil {
					t.Fatal(err)
				}
				w.process("q", "a", "b").run(election)
				if id := <-leaders; id != "q" || w.at(election) != other(falls) {
					t.Errorf("%s leads, on %s", id, w.at(election))
				}
				_, err = s.Join(w.ctx, election, "", "")
				want(t, err, backend.ErrNotMember) // this session is with the other cluster
			}, "a", "b")
		})
	}
}
