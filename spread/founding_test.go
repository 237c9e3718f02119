package spread_test

import (
	"context"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// beforeStamp returns a process that does something before it writes the n-th record .spread.
func (w *world) beforeStamp(n int, do func(*process), clusters ...string) *process {
	p := w.process("founder", clusters...)
	p.before = func(call, on string) {
		if call == "put" && on == ".spread" {
			if n--; n == 0 {
				do(p)
			}
		}
	}
	return p
}

// A process that is killed while it founds the list leaves nothing that the next ones do not bring to an end: each founder
// then says by itself where the elections are that it keeps.
func TestFoundingIsKilled(t *testing.T) {
	for kill, killed := 1, true; killed; kill++ {
		inWorld(t, func(t *testing.T, w *world) {
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			killed = false
			p := w.beforeStamp(kill, func(p *process) { killed = true; p.kill(); cancel() }, "a", "b")
			if err := uses(ctx, p, election); killed != (err != nil) {
				t.Fatalf("killed before it wrote record %d: %t, and then %v", kill, killed, err)
			}
			q := w.process("q", "a", "b")
			for _, name := range names(10) {
				if err := uses(w.ctx, q, name); err != nil {
					t.Fatal(err)
				}
			}
			for _, out := range []string{"a", "b"} {
				w.c[out].Pause()
				starts := w.process("starts", "a", "b")
				if err := starts.Reach(w.ctx); err != nil {
					t.Errorf("the founder was killed before it wrote record %d; while %s is out: %v", kill, out, err)
				}
				w.c[out].Resume()
			}
		}, "a", "b")
	}
}

// Who founds a list, and of which a cluster is put into another list meanwhile, does not take that for its own.
func TestFoundingIsOvertaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.beforeStamp(4, func(*process) {
			vandal, err := w.c["b"].Client("vandal").Session(w.ctx)
			if err == nil {
				err = vandal.Delete(w.ctx, ".spread", nil)
			}
			if err == nil {
				err = uses(w.ctx, w.process("other", "b", "c"), election)
			}
			if err != nil {
				t.Error(err)
			}
		}, "a", "b")
		for _, name := range names(10) {
			err := uses(w.ctx, p, name)
			want(t, err, backend.ErrInvalid)
		}
		if r := w.c["b"].Record(".spread"); !strings.Contains(string(r.Value), `"b","c"`) {
			t.Errorf("b says %s", r.Value)
		}
	}, "a", "b", "c")
}

// A founder that is put into another list, or emptied, just when it is made complete is not used.
func TestFounderIsTakenAway(t *testing.T) {
	for name, takes := range map[string]func(*world) error{
		"by another list": func(w *world) error {
			err := uses(w.ctx, w.process("other", "b", "c"), election)
			return err
		},
		"by nobody": func(*world) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx, cancel := context.WithCancel(w.ctx)
				defer cancel()
				killed := w.beforeStamp(4, func(p *process) { p.kill(); cancel() }, "a", "b")
				if err := uses(ctx, killed, election); err == nil {
					t.Fatal("b is complete")
				}
				taken := false
				p := w.beforeStamp(1, func(*process) {
					taken = true
					vandal, err := w.c["b"].Client("vandal").Session(w.ctx)
					if err == nil {
						err = vandal.Delete(w.ctx, ".spread", nil)
					}
					if err == nil {
						err = takes(w)
					}
					if err != nil {
						t.Error(err)
					}
				}, "a", "b")
				for _, name := range names(10) {
					if _, keeper, err := p.Where(w.ctx, name); (err == nil) != (keeper == "a") {
						t.Errorf("%s keeps the home of %s: %v", keeper, name, err)
					}
				}
				if !taken {
					t.Error("b was complete")
				}
			}, "a", "b", "c")
		})
	}
}
