package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

// Many clients join, lead, leave, crash, are cut off and deposed at once, in real
// time. Guarded writes of leaders stay in the order of their tokens, and at the end
// nothing is left.
func TestCrowd(t *testing.T) {
	const (
		clients = 16
		steps   = 60
	)
	c := memory.New(&memory.Options{TTL: 150 * time.Millisecond, Slack: 20 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	var terms atomic.Int32
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(7, uint64(i)))
			b := c.Client(fmt.Sprint(i))
			for range steps {
				if ctx.Err() != nil {
					break
				}
				err := candidacy(ctx, b, time.Duration(20+rnd.IntN(400))*time.Millisecond, func(s backend.Session, m backend.Member, token uint64) error {
					err := sign(ctx, s, m, token)
					if err == nil {
						terms.Add(1)
					}
					return err
				})
				if err != nil {
					t.Errorf("client %d: %v", i, err)
				}
				switch rnd.IntN(12) {
				case 0:
					b.Kill()
					b = c.Client(fmt.Sprint(i))
				case 1:
					b.Cut()
					time.AfterFunc(time.Duration(rnd.IntN(250))*time.Millisecond, b.Heal)
				case 2:
					b.Disconnect()
				case 3:
					b.LoseAnswer()
				case 4:
					b.Expire()
				case 5:
					c.Restart()
				case 6:
					if line := c.Members(election); len(line) > 0 {
						c.Remove(election, line[0].Key)
					}
				}
			}
			b.Heal()
			b.Close()
		})
	}
	wg.Wait()
	if n := terms.Load(); n < clients {
		t.Errorf("%d terms among %d clients in %d steps each", n, clients, steps)
	}
	for deadline := time.Now().Add(3 * time.Second); len(c.Sessions()) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("sessions that nobody keeps alive still live: %v", c.Sessions())
		}
		time.Sleep(10 * time.Millisecond)
	}
	wantLine(t, c)
}

// sign writes the token on condition that m stands. It fails if a later term has written
// before.
func sign(ctx context.Context, s backend.Session, m backend.Member, token uint64) error {
	r, err := s.Get(ctx, "signed")
	if err != nil {
		return err
	}
	before, _ := strconv.ParseUint(string(r.Value), 10, 64)
	_, err = s.Put(ctx, "signed", strconv.AppendUint(nil, token, 10), &backend.If{Version: r.Version, Member: m})
	if err == nil && before >= token {
		return fmt.Errorf("the leader with token %d could write after the one with token %d", token, before)
	}
	return err
}

// candidacy joins the line with a new member and leads once, unless something prevents that
// or patience ends. It returns an error for what must not happen.
func candidacy(ctx context.Context, b *memory.Backend, patience time.Duration, lead func(backend.Session, backend.Member, uint64) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := b.Session(ctx)
	if err != nil {
		return unexpected(err)
	}
	m, err := s.Join(ctx, election, "", "")
	if err != nil {
		return unexpected(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		s.Leave(ctx, m.Member) // where it does not get through, the session sees to it
	}()
	for {
		p, err := s.Ahead(ctx, m.Member)
		switch {
		case err != nil:
			return unexpected(err)
		case p.First:
			return unexpected(lead(s, m.Member, p.Token))
		}
		if err := s.Gone(ctx, p.Ahead); err != nil {
			return unexpected(err)
		}
	}
}

// unexpected returns nil for an error that a fault explains.
func unexpected(err error) error {
	for _, e := range []error{
		backend.ErrSessionEnded, backend.ErrUnavailable, backend.ErrClosed, backend.ErrNotMember, backend.ErrVersion,
		context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}
