package elect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
)

func TestListenTellsOfEachTermInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		a := client(t, c, "a")
		e := elect.New(a, "reports", nil)
		var heard []string
		stop := e.Listen(func(term *elect.Term) {
			if e.Term() != term {
				t.Errorf("Term is %v where the listener is told of %v", e.Term(), term)
			}
			switch {
			case term == nil:
				heard = append(heard, "nobody")
			case term.Check() != nil:
				t.Errorf("told of %v, whose Check says %v", term, term.Check())
			default:
				heard = append(heard, "leads")
			}
		})
		r := run(ctx, e)
		<-r.terms
		a.Expire()
		<-r.terms
		synctest.Wait()
		stop()
		cancel()
		<-r.end
		if want := []string{"nobody", "leads", "nobody", "leads"}; !slices.Equal(heard, want) {
			t.Errorf("heard %v, want %v", heard, want)
		}
		if term := e.Term(); term != nil {
			t.Errorf("after Run Term is %v", term)
		}
	})
}

// The process may be suspended across the deadline: no timer has said anything then.
func TestTermIsNilAfterItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		a := client(t, c, "a")
		e := elect.New(a, "reports", nil)
		term, err := e.Campaign(t.Context())
		if err != nil || e.Term() != term {
			t.Fatalf("Campaign returned %v, %v, and Term %v", term, err, e.Term())
		}
		a.Cut()
		time.Sleep(ttl)
		if got := e.Term(); got != nil {
			t.Errorf("Term is %v after its deadline", got)
		}
		a.Heal()
		term.Resign(t.Context())
	})
}

func TestStepDownGoesToTheEndOfTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		ra := run(ctx, elect.New(client(t, c, "a"), "reports", &elect.Options{ID: "a"}))
		first := <-ra.terms
		synctest.Wait()
		rb := run(ctx, elect.New(client(t, c, "b"), "reports", &elect.Options{ID: "b"}))
		time.Sleep(time.Minute)
		ra.stop <- fmt.Errorf("no disk: %w", elect.ErrStepDown)
		second := <-rb.terms
		if !errors.Is(first.Check(), elect.ErrResigned) {
			t.Errorf("the first term ended with %v", first.Check())
		}
		synctest.Wait()
		_, line, err := elect.New(client(t, c, "c"), "reports", nil).Line(t.Context())
		if err != nil || len(line) != 2 || line[0].Token != second.Token() || line[1].ID != "a" {
			t.Errorf("the line is %+v, %v; want b and then a", line, err)
		}
		cancel()
		<-ra.end
		<-rb.end
	})
}

// A candidate that cannot work leads less and less often, also if nobody else stands in line.
func TestRunPausesAfterTermsThatDoNotLast(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var began []time.Time
		last := errors.New("the last one")
		err := elect.New(client(t, c, "a"), "reports", nil).Run(ctx, func(ctx context.Context, term *elect.Term) error {
			switch began = append(began, time.Now()); {
			case len(began) == 10:
				time.Sleep(time.Hour)
			case len(began) == 12:
				return last
			}
			return elect.ErrStepDown
		})
		if err != last {
			t.Fatalf("Run returned %v", err)
		}
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
			want *= time.Second
			if d := began[i+1].Sub(began[i]); d < want/2 || d > want+time.Second {
				t.Errorf("pause %d took %v; want between a half of %v and the whole", i, d, want)
			}
		}
		if d := began[11].Sub(began[10]); d > time.Second {
			t.Errorf("after a term of an hour the pause took %v", d)
		}
	})
}

// A request that comes late must not end the term of the successor.
func TestAskToResignOfATermThatIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		operator := newOperator(t, c)
		a, err := elect.New(client(t, c, "a"), "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.Resign(t.Context())
		b, err := elect.New(client(t, c, "b"), "reports", &elect.Options{ID: "b"}).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l, err := operator.AskToResign(t.Context(), &operate.ResignOptions{Token: a.Token()})
		if !errors.Is(err, operate.ErrOtherLeader) || l.ID != "b" {
			t.Errorf("asking the term before: %+v, %v; want ErrOtherLeader and b", l, err)
		}
		synctest.Wait()
		if err := b.Check(); err != nil {
			t.Errorf("the successor's term ended with %v", err)
		}
		if _, err := operator.AskToResign(t.Context(), &operate.ResignOptions{Token: b.Token()}); err != nil {
			t.Errorf("asking the term that leads: %v", err)
		}
		synctest.Wait()
		if err := b.Check(); !errors.Is(err, elect.ErrAsked) {
			t.Errorf("the term that was named: %v, want ErrAsked", err)
		}
		b.Resign(t.Context())
	})
}

// A listener that resigns is told of the end when it has returned, and nobody waits for anybody.
func TestListenerResigns(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		e := elect.New(client(t, c, "a"), "reports", nil)
		var heard []string
		busy := false
		stop := e.Listen(func(term *elect.Term) {
			if busy {
				t.Error("a listener is called while it runs")
			}
			busy = true
			defer func() { busy = false }()
			if term == nil {
				heard = append(heard, "nobody")
				return
			}
			heard = append(heard, "leads")
			if err := term.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		})
		defer stop()
		term, err := e.Campaign(t.Context())
		if err != nil || !errors.Is(term.Check(), elect.ErrResigned) {
			t.Fatalf("Campaign: %v; want a term that has been resigned", err)
		}
		synctest.Wait()
		if want := []string{"nobody", "leads", "nobody"}; !slices.Equal(heard, want) {
			t.Errorf("heard %v, want %v", heard, want)
		}
	})
}

// A listener may resign the term whose end it is told of, whoever has ended it.
func TestListenerResignsWhatHasEnded(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *memory.Backend, *elect.Term){
		"lost":     func(_ *testing.T, a *memory.Backend, _ *elect.Term) { a.Expire() },
		"resigned": func(t *testing.T, _ *memory.Backend, term *elect.Term) { term.Resign(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				a := client(t, c, "a")
				e := elect.New(a, "reports", nil)
				var led *elect.Term
				resigned := 0
				defer e.Listen(func(term *elect.Term) {
					if term == nil && led != nil {
						led.Resign(t.Context())
						resigned++
					}
					led = term
				})()
				for range 2 {
					term, err := e.Campaign(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					end(t, a, term)
					synctest.Wait()
				}
				if resigned != 2 {
					t.Errorf("the listener has resigned %d times, want 2", resigned)
				}
			})
		})
	}
}

// A candidate that does not lead has no term, and Check says so.
func TestCheckOfNoTerm(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		if err := elect.New(client(t, c, "a"), "reports", nil).Term().Check(); !errors.Is(err, elect.ErrNotFirst) {
			t.Errorf("Check returned %v", err)
		}
	})
}

// A term may be lost while it begins: whoever is told of both may resign it.
func TestListenerResignsWhatEndsAtOnce(t *testing.T) {
	for range 20 {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			a := client(t, c, "a")
			e := elect.New(a, "reports", &elect.Options{History: 3})
			var led *elect.Term
			defer e.Listen(func(term *elect.Term) {
				if term == nil && led != nil {
					led.Resign(t.Context())
				} else if term != nil {
					go a.Expire()
				}
				led = term
			})()
			if _, err := e.Campaign(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		})
	}
}
