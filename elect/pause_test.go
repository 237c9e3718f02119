package elect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/view"
)

func TestPauseAndResume(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "a"})
		f.join(elect.Options{ID: "b"})
		term := f.leader("a")
		set, err := f.operator.Pause(t.Context(), "the disk is moved")
		if err != nil {
			t.Fatal(err)
		}
		if err := term.Check(); !errors.Is(err, elect.ErrAsked) {
			t.Errorf("the leader's term: %v, want ErrAsked", err)
		}
		f.wantLine("operator a b", "operator b a") // both have joined again at one instant
		f.join(elect.Options{ID: "c"})
		time.Sleep(time.Hour)
		s, err := f.operator.State(t.Context())
		if err != nil || !s.Vacant() || !s.Paused || s.Gate.ID != "operator" || s.Gate.Value != "the disk is moved" || s.Gate != set {
			t.Errorf("State while paused: %+v, %v; Pause has returned %+v", s, err, set)
		}
		l, err := f.operator.Leader(t.Context())
		if l != (elect.Leader{}) || !errors.Is(err, elect.ErrNoLeader) || !errors.Is(err, elect.ErrPaused) || !strings.Contains(err.Error(), "operator: the disk is moved") {
			t.Errorf("Leader while paused: %+v, %v", l, err)
		}
		f.neverLed("b", "c")
		if _, err := f.operator.Pause(t.Context(), "again"); !errors.Is(err, elect.ErrPaused) || !strings.Contains(err.Error(), "the disk is moved") {
			t.Errorf("a second Pause: %v", err)
		}
		if _, err := f.operator.AskToResign(t.Context(), nil); !errors.Is(err, elect.ErrPaused) {
			t.Errorf("AskToResign while paused: %v", err)
		}
		f.wantLine("operator a b c", "operator b a c")
		gate, err := f.operator.Resume(t.Context(), nil)
		if err != nil || gate.ID != "operator" || gate.Value != "the disk is moved" {
			t.Errorf("Resume: %+v, %v", gate, err)
		}
		next := f.next("a", "b")
		if next.Token() <= term.Token() {
			t.Errorf("token %d after %d", next.Token(), term.Token())
		}
		if _, err := f.operator.Resume(t.Context(), nil); !errors.Is(err, operate.ErrNotPaused) {
			t.Errorf("a second Resume: %v", err)
		}
		time.Sleep(time.Minute)
		if next.Check() != nil {
			t.Errorf("the term after the pause: %v", next.Check())
		}
	})
}

// A gate stands in line for a moment before it is pinned. Nobody takes it for a leader then.
func TestGateLeadsNobody(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		joined, pin := make(chan struct{}), make(chan struct{})
		b := view.Of(f.c.Client("slow"), func(s backend.Session) backend.Session { return slowPin{s, joined, pin} })
		paused := make(chan error, 1)
		go func() { _, err := operate.New(b, "reports", "ops").Pause(t.Context(), "a new disk"); paused <- err }()
		<-joined
		s, err := f.operator.State(t.Context())
		if err != nil || s != (elect.State{}) {
			t.Errorf("State before the gate is pinned: %+v, %v", s, err)
		}
		if _, all, err := f.operator.Line(t.Context()); err != nil || len(all) != 1 || all[0].ID != "ops" || all[0].Value != "a new disk" {
			t.Errorf("Line before the gate is pinned: %+v, %v", all, err)
		}
		close(pin)
		if err := <-paused; err != nil {
			t.Fatal(err)
		}
		if s, err := f.operator.State(t.Context()); err != nil || !s.Paused || s.Gate.ID != "ops" || s.Gate.Value != "a new disk" {
			t.Errorf("State of the paused election: %+v, %v", s, err)
		}
	})
}

// slowPin says that its member is about to be pinned, and waits.
type slowPin struct {
	backend.Session
	joined, pin chan struct{}
}

func (s slowPin) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	close(s.joined)
	<-s.pin
	return s.Session.Pin(ctx, m, h, at)
}

// Who loses the way to the coordinator while the gate is pinned cannot know whether that was done, and says so.
func TestPauseThatIsNotKnown(t *testing.T) {
	for name, ends := range map[string]bool{"the session lives": false, "the session ends": true} {
		t.Run(name, func(t *testing.T) {
			inField(t, func(t *testing.T, f *field) {
				c := f.c.Client("cut")
				b := view.Of(c, func(s backend.Session) backend.Session {
					cut := &cutAfterPin{Session: s}
					if ends {
						cut.end = c.Cut
					}
					return cut
				})
				defer b.Close()
				gate, err := operate.New(b, "reports", "ops").Pause(t.Context(), "a new disk")
				if err == nil || !strings.Contains(err.Error(), "not known whether the election is paused") || gate != (elect.Candidate{}) {
					t.Errorf("Pause: %+v, %v", gate, err)
				}
				if s, err := f.operator.State(t.Context()); err != nil || !s.Paused {
					t.Errorf("State: %+v, %v; want that it is paused", s, err)
				}
			})
		})
	}
}

// cutAfterPin cannot reach the coordinator any more once its gate is pinned.
type cutAfterPin struct {
	backend.Session
	cut bool
	end func() // the heartbeats; nil if they go on
}

func (s *cutAfterPin) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	if err := s.Session.Pin(ctx, m, h, at); err != nil {
		return err
	}
	s.cut = true
	if s.end != nil {
		s.end()
		<-s.Done()
		return s.Err()
	}
	return backend.ErrUnavailable
}

func (s *cutAfterPin) Leave(ctx context.Context, m backend.Member) error {
	if s.cut && s.Err() == nil {
		return backend.ErrUnavailable
	}
	return s.Session.Leave(ctx, m)
}

func TestThePauseOutlivesWhoSetIt(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		b := f.c.Client("short")
		if _, err := operate.New(b, "reports", "").Pause(t.Context(), "for the night"); err != nil {
			t.Fatal(err)
		}
		b.Close()
		f.join(elect.Options{ID: "a"})
		time.Sleep(time.Hour)
		f.neverLed("a")
		if _, err := f.operator.Resume(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		f.leader("a")
	})
}

// Whoever resumes late does not end the pause that somebody else has begun meanwhile.
func TestResumeEndsThePauseThatIsMeant(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		pause := func(why string) elect.Candidate {
			t.Helper()
			if _, err := f.operator.Pause(t.Context(), why); err != nil {
				t.Fatal(err)
			}
			s, err := f.operator.State(t.Context())
			if err != nil || s.Gate.Value != why {
				t.Fatalf("the state is %+v, %v", s, err)
			}
			return s.Gate
		}
		first := pause("the disk is moved")
		if _, err := f.operator.Resume(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		second := pause("the disk is full")
		late := &operate.ResumeOptions{Token: first.Token}
		if l, err := f.operator.Resume(t.Context(), late); !errors.Is(err, operate.ErrNotPaused) || l.Token != second.Token {
			t.Errorf("Resume of the first pause: %+v, %v; want ErrNotPaused and the second", l, err)
		}
		if l, err := f.operator.State(t.Context()); err != nil || l.Gate.Token != second.Token || !l.Paused {
			t.Errorf("after that: %+v, %v; want the second pause", l, err)
		}
		if l, err := f.operator.Resume(t.Context(), &operate.ResumeOptions{Token: second.Token}); err != nil || l.Token != second.Token {
			t.Errorf("Resume of the second pause: %+v, %v", l, err)
		}
		if _, err := f.operator.Resume(t.Context(), late); !errors.Is(err, operate.ErrNotPaused) {
			t.Errorf("Resume without a pause: %v", err)
		}
	})
}

// A foreign client in front of the gate leads in its turn; ours never do.
func TestThePauseWaitsForForeignCandidates(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "a"})
		f.leader("a")
		leave := f.foreign("x")
		f.join(elect.Options{ID: "b"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		set, err := f.operator.Pause(ctx, "x is to go")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "x (") || set.ID != "operator" || set.Token == 0 {
			t.Errorf("Pause: %+v, %v; want the gate, and who stands in front", set, err)
		}
		f.wantLine("x b operator a")
		leave()
		f.wantLine("operator a b")
		f.neverLed("b")
	})
}

// Whoever resumes may be interrupted between the two steps.
func TestAnInterruptedResumeDoesNoHarm(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		f.join(elect.Options{ID: "a"})
		f.join(elect.Options{ID: "b"})
		f.leader("a")
		if _, err := f.operator.Pause(t.Context(), "why"); err != nil {
			t.Fatal(err)
		}
		now, err := f.operator.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.c.Remove("reports", now.Gate.Key)
		term := f.next("a", "b")
		time.Sleep(time.Minute)
		if term.Check() != nil {
			t.Errorf("the term ended with %v", term.Check())
		}
		if l, err := f.operator.Leader(t.Context()); err != nil || l.Token != term.Token() {
			t.Errorf("the leader is %+v, %v", l, err)
		}
		if _, err := f.operator.Resume(t.Context(), nil); !errors.Is(err, operate.ErrNotPaused) {
			t.Errorf("Resume: %v", err)
		}
		if _, err := f.operator.Pause(t.Context(), "again"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if term.Check() == nil {
			t.Error("the leader leads on after a second pause")
		}
	})
}

func TestPauseRefusesReasonsOfSeveralLines(t *testing.T) {
	inField(t, func(t *testing.T, f *field) {
		if _, err := f.operator.Pause(t.Context(), "a\nb"); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Pause: %v", err)
		}
	})
}
