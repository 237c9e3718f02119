package elect_test

import (
	"context"
	"errors"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// unwatching has sessions whose watches never tell anything.
type unwatching struct{ backend.Backend }

func (b unwatching) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return unwatchingSession{s}, err
}

type unwatchingSession struct{ backend.Session }

func (unwatchingSession) WatchPlace(ctx context.Context, _ backend.Member, _ *backend.Place) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// A coordinator that refuses what only the leader may do has proved that the member has gone: the term ends
// before the call returns, also if no watch has told of it.
func TestRefusalEndsTheTerm(t *testing.T) {
	calls := map[string]func(ctx context.Context, term *elect.Term) error{
		"Put": func(ctx context.Context, term *elect.Term) error {
			_, err := term.Put(ctx, "reports-position", []byte("7"), backend.Any)
			return err
		},
		"Delete": func(ctx context.Context, term *elect.Term) error {
			return term.Delete(ctx, "reports-position", backend.Any)
		},
		"Acknowledge": func(ctx context.Context, term *elect.Term) error { return term.Acknowledge(ctx) },
		"Remove": func(ctx context.Context, term *elect.Term) error {
			return term.Remove(ctx, backend.Member{Line: "items", Key: "none", Position: 1})
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				term, err := elect.New(unwatching{client(t, c, "a")}, "reports", nil).Campaign(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer term.Resign(context.Background())
				c.Remove("reports", term.Member().Key)
				if term.Check() != nil {
					t.Fatal("the term has ended by itself, so nothing is shown")
				}
				if err := call(t.Context(), term); !errors.Is(err, backend.ErrNotMember) {
					t.Fatalf("%s of a leader that was removed returned %v", name, err)
				}
				if cause := context.Cause(term.Context()); !errors.Is(cause, elect.ErrLost) || !errors.Is(cause, elect.ErrRemoved) {
					t.Errorf("when %s was refused, the cause of the term's context was %v", name, cause)
				}
			})
		})
	}
}
