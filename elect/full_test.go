package elect_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
)

// A full backend is that of a coordinator whose disk is full: no record can be written.
type full struct {
	backend.Backend
	others bool // other calls succeed
}

func (b full) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return fullSession{s, b.others}, err
}

type fullSession struct {
	backend.Session
	others bool
}

func (s fullSession) Put(context.Context, string, []byte, *backend.If) (backend.Version, error) {
	return 0, backend.ErrUnavailable
}

func (s fullSession) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	if !s.others {
		return backend.Joined{}, backend.ErrUnavailable
	}
	return s.Session.Join(ctx, line, value, record)
}

func (s fullSession) Line(ctx context.Context, line string) (backend.Line, error) {
	if !s.others {
		return backend.Line{}, backend.ErrUnavailable
	}
	return s.Session.Line(ctx, line)
}

func (s fullSession) Head(ctx context.Context, line string) (backend.Line, error) {
	return s.Line(ctx, line)
}

// Whoever waits for a time and no longer learns what it was that took so long.
func TestEndOfAContextSaysWhatWasInTheWay(t *testing.T) {
	enough := errors.New("enough")
	for what, call := range map[string]func(context.Context, backend.Backend, *elect.Election) error{
		"Campaign": func(ctx context.Context, _ backend.Backend, e *elect.Election) error {
			_, err := e.Campaign(ctx)
			return err
		},
		"Run": func(ctx context.Context, _ backend.Backend, e *elect.Election) error {
			return e.Run(ctx, func(context.Context, *elect.Term) error { return nil })
		},
		"RaiseFence": func(ctx context.Context, b backend.Backend, _ *elect.Election) error {
			return operate.New(b, "reports", "").RaiseFence(ctx, 7)
		},
		"Observe": func(ctx context.Context, _ backend.Backend, e *elect.Election) (err error) {
			for _, err = range e.Observe(ctx) {
			}
			return err
		},
	} {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
			defer cancel()
			b := full{client(t, c, "a"), false}
			err := call(ctx, b, elect.New(b, "reports", nil))
			if !errors.Is(err, enough) || !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("%s returned %v; want the cause of its context, and that there was no answer", what, err)
			}
		})
	}
}

// A disk that is full stays so: Acknowledge gives up.
func TestAcknowledgeGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, c *memory.Coordinator) {
		term, err := elect.New(full{client(t, c, "a"), true}, "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer term.Resign(t.Context())
		began := time.Now()
		if err := term.Acknowledge(context.Background()); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("Acknowledge returned %v, want ErrUnavailable", err)
		}
		if took := time.Since(began); took > 2*ttl {
			t.Errorf("Acknowledge tried for %v, want about a session time, %v", took, ttl)
		}
	})
}
