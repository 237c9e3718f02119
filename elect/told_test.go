package elect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// several is an error of several parts, whose type is not comparable.
type several []error

func (s several) Error() string   { return errors.Join(s...).Error() }
func (s several) Unwrap() []error { return s }

// What the work says when Run is told to end is not lost, and an end in order is one for errors.Is.
func TestRunToldToEnd(t *testing.T) {
	shutdown, unsaved := errors.New("shutdown"), errors.New("could not save")
	for name, tt := range map[string]struct {
		says   func(ctx context.Context) error
		failed bool
	}{
		"nothing":                             {func(context.Context) error { return nil }, false},
		"that it was to end":                  {func(ctx context.Context) error { return fmt.Errorf("query: %w", ctx.Err()) }, false},
		"why it was to end":                   {func(ctx context.Context) error { return fmt.Errorf("query: %w", context.Cause(ctx)) }, false},
		"that it stands down":                 {func(context.Context) error { return fmt.Errorf("full disk: %w", elect.ErrStepDown) }, false},
		"that it has failed":                  {func(context.Context) error { return unsaved }, true},
		"both":                                {func(ctx context.Context) error { return errors.Join(ctx.Err(), unsaved) }, true},
		"that it stands down, and has failed": {func(context.Context) error { return errors.Join(elect.ErrStepDown, unsaved) }, true},
		"that another lock was lost, and has failed": {func(context.Context) error {
			return fmt.Errorf("%w: %w", unsaved, &elect.LostError{Election: "other", Err: elect.ErrRemoved})
		}, true},
		"that another lock was lost":        {func(context.Context) error { return &elect.LostError{Election: "other", Err: elect.ErrRemoved} }, false},
		"twice that it was to end":          {func(ctx context.Context) error { return errors.Join(ctx.Err(), nil, context.Cause(ctx)) }, false},
		"something that cannot be compared": {func(ctx context.Context) error { return several{unsaved} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *memory.Coordinator) {
				ctx, cancel := context.WithCancelCause(t.Context())
				end := make(chan error, 1)
				go func() {
					end <- elect.New(client(t, c, "a"), "reports", nil).Run(ctx, func(ctx context.Context, _ *elect.Term) error {
						<-ctx.Done()
						return tt.says(ctx)
					})
				}()
				synctest.Wait()
				cancel(shutdown)
				err := <-end
				if errors.Is(err, unsaved) != tt.failed || errors.Is(err, context.Canceled) == tt.failed || errors.Is(err, shutdown) == tt.failed || strings.Count(err.Error(), "shutdown") != 1 {
					t.Errorf("Run returned %v", err)
				}
			})
		})
	}

	t.Run("waiting", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			term, err := elect.New(client(t, c, "a"), "reports", nil).Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer term.Resign(t.Context())
			ctx, cancel := context.WithCancelCause(t.Context())
			end := make(chan error, 1)
			go func() {
				end <- elect.New(client(t, c, "b"), "reports", nil).Run(ctx, func(context.Context, *elect.Term) error { return nil })
			}()
			synctest.Wait()
			cancel(shutdown)
			if err := <-end; !errors.Is(err, context.Canceled) || !errors.Is(err, shutdown) {
				t.Errorf("Run returned %v", err)
			}
		})
	})

	t.Run("between terms", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			ctx, cancel := context.WithCancelCause(t.Context())
			end := make(chan error, 1)
			go func() {
				end <- elect.New(client(t, c, "a"), "reports", nil).Run(ctx, func(context.Context, *elect.Term) error { return elect.ErrStepDown })
			}()
			synctest.Wait()
			cancel(shutdown)
			if err := <-end; !errors.Is(err, context.Canceled) || !errors.Is(err, shutdown) {
				t.Errorf("Run returned %v", err)
			}
		})
	})

	t.Run("lost", func(t *testing.T) {
		bubble(t, func(t *testing.T, c *memory.Coordinator) {
			var log bytes.Buffer
			b := client(t, c, "a")
			times := 0
			err := elect.New(b, "reports", &elect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}).Run(t.Context(), func(ctx context.Context, _ *elect.Term) error {
				if times++; times == 2 {
					return nil
				}
				b.Expire()
				<-ctx.Done()
				return errors.Join(ctx.Err(), unsaved)
			})
			if err != nil || !strings.Contains(log.String(), "could not save") {
				t.Errorf("Run returned %v, and the log says\n%s", err, &log)
			}
		})
	})
}
