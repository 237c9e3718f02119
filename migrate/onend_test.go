package migrate_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/migrate"
)

// An ending session ends when a test says so: it tells of that first, as law L5 demands, and only then closes Done.
type ending struct {
	backend.Session
	told kit.Ender
	err  atomic.Pointer[error]
	done chan struct{}
}

func (s *ending) OnEnd(f func(error)) (stop func()) { return s.told.OnEnd(f) }
func (s *ending) Done() <-chan struct{}             { return s.done }

func (s *ending) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return s.Session.Err()
}

// end ends the session, and calls release where its end would be sent.
func (s *ending) end(release func()) {
	why := fmt.Errorf("%w: by the test", backend.ErrSessionEnded)
	s.err.Store(&why)
	s.told.TellEnd(why)
	release()
	close(s.done)
}

// When a coordinator's driver ends its own session, the terms that hang on it end before the coordinator hears of that.
func TestTermsEndBeforeAPartIsReleased(t *testing.T) {
	for _, tt := range []struct {
		side  int
		moved bool
		ends  bool // the term
	}{{0, false, true}, {1, false, true}, {0, true, false}, {1, true, true}} {
		inWorld(t, func(w *world) {
			op := w.begun(onBoth)
			var parts [2]*ending
			var sub [2]backend.Backend
			for side := range sub {
				sub[side] = view.Of(w.c[side].Client("p"), func(s backend.Session) backend.Session {
					if parts[side] == nil {
						parts[side] = &ending{Session: s, done: make(chan struct{})}
					}
					return parts[side]
				})
			}
			b := migrate.New(sub[0], sub[1], &migrate.Options{From: oldURL, To: newURL})
			defer b.Close()
			term, err := elect.New(b, election, nil).Campaign(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if tt.moved {
				w.do(op.Cutover, migrate.Moved)
				time.Sleep(time.Second)
			}
			parts[tt.side].end(func() {
				if ended := term.Context().Err() != nil; ended != tt.ends {
					t.Errorf("moved %v, side %d ends: the term has ended is %v, want %v", tt.moved, tt.side, ended, tt.ends)
				}
			})
			time.Sleep(time.Second)
			if ended := term.Check() != nil; ended != tt.ends {
				t.Errorf("moved %v, side %d has ended: the term has ended is %v, want %v", tt.moved, tt.side, ended, tt.ends)
			}
			_ = term.Resign(w.ctx)
		})
	}
}
