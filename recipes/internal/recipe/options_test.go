package recipe_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/barrier"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
	"github.com/succession-dev/succession/recipes/task"
)

// A use of a recipe, as a row of the table of options in docs/recipes.md has it.
type use struct {
	row  string // how the row begins
	what string
	// hold takes what the recipe gives, and holds it until ctx ends, or fails.
	hold func(ctx context.Context, b backend.Backend, o *elect.Options) error
	line string // where who holds it then stands
	// election has the history, if there is one.
	election string
	// has are the columns that it has: ID, Value, Ready and History. Others are refused.
	has []string
}

// name is the name of each recipe.
const name = "jobs"

var uses = []use{
	{"election", "an election", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		return elect.New(b, name, o).Run(ctx, func(ctx context.Context, _ *elect.Term) error { <-ctx.Done(); return nil })
	}, name, name, []string{"ID", "Value", "Ready", "History"}},
	{"election", "a mutex", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		return held(ctx)(lock.NewMutex(b, name, o).Lock(ctx))
	}, name, name, []string{"ID", "Value", "Ready", "History"}},
	{"election", "a standby", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		s := task.NewStandby(b, name, o)
		if err := s.Start(ctx, "t"); err != nil {
			return err
		}
		return s.Hot(ctx, "t", func(ctx context.Context, _ *task.Run) error { <-ctx.Done(); return context.Cause(ctx) })
	}, name + "-run-t", name + "-run-t", []string{"ID", "Value", "Ready", "History"}},
	{"election", "a cold standby", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		s := task.NewStandby(b, name, o)
		if err := s.Start(ctx, "t"); err != nil {
			return err
		}
		return s.Cold(ctx, func(ctx context.Context, _ *task.Run) error { <-ctx.Done(); return context.Cause(ctx) })
	}, name + "-run-t", name + "-run-t", []string{"ID", "Value", "Ready", "History"}},
	{"`RWMutex`", "a writer", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		return held(ctx)(lock.NewRWMutex(b, name, o).Lock(ctx))
	}, name, name, []string{"ID", "Value", "History"}},
	{"`Semaphore`", "a semaphore", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		return held(ctx)(lock.NewSemaphore(b, name, 2, o).Acquire(ctx))
	}, name + "-slots", "", []string{"ID", "Value"}},
	{"queue", "a queue", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		q := queue.New(b, name, &queue.Options{Options: *o})
		if _, err := q.Put(ctx, "x"); err != nil {
			return err
		}
		item, err := q.Take(ctx)
		if err != nil {
			return err
		}
		return held(ctx)(&lock.Held{Hold: item.Hold}, nil)
	}, name + "-claims", "", []string{"ID"}},
	{"barrier", "a barrier", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		return barrier.New(b, name, 2, o).Wait(ctx)
	}, name + "-arrivals", "", []string{"ID", "Value"}},
	{"barrier", "a double barrier", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		_, err := barrier.NewDouble(b, name, 2, o).Enter(ctx)
		return err
	}, name + "-arrivals", "", []string{"ID", "Value"}},
	{"group", "a group", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		p, err := group.New(b, name, o).Join(ctx)
		if err != nil {
			return err
		}
		defer p.Leave(ctx)
		return p.Assign(ctx, []string{"i"}, func(ctx context.Context, _ string, _ *elect.Term) error { <-ctx.Done(); return nil })
	}, name + "-members", name + "-item-i", []string{"ID", "Value", "History"}},
	{"pool", "a pool", func(ctx context.Context, b backend.Backend, o *elect.Options) error {
		return task.NewPool(b, name, o).Work(ctx, func(context.Context, *task.Task) (string, error) { return "", nil })
	}, name + "-workers", name + "-master", []string{"ID", "Value", "History"}},
}

func held(ctx context.Context) func(*lock.Held, error) error {
	return func(h *lock.Held, err error) error {
		if err != nil {
			return err
		}
		<-ctx.Done()
		h.Unlock(ctx)
		return context.Cause(ctx)
	}
}

// Each cell of the table in docs/recipes.md is what the recipe does: an option that it has takes effect, and any other
// is refused.
func TestTableOfOptions(t *testing.T) {
	cells := table(t)
	for _, u := range uses {
		for i, column := range []string{"ID", "Value", "Ready", "History"} {
			has := slices.Contains(u.has, column)
			if cell := cells[u.row][i]; strings.HasPrefix(cell, "no") == has {
				t.Errorf("%s: the page says of %s %q; has it: %t", u.what, column, cell, has)
			}
			for _, o := range options(column) {
				bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
					b := bubble.Client(t, c, "a")
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					done := bubble.Go(func() (struct{}, error) { return struct{}{}, u.hold(ctx, b, o.Options) })
					time.Sleep(time.Second)
					synctest.Wait()
					if has {
						if why := o.shows(c, u); why != "" {
							t.Errorf("%s with %s: %s", u.what, o.name, why)
						}
						cancel()
						<-done.Done
						if column == "History" {
							past, err := operate.New(b, u.election, "").History(t.Context())
							if err != nil || len(past) != 1 || past[0].ID != "me" || past[0].Ended.IsZero() {
								t.Errorf("%s with %s: the history is %+v, %v", u.what, o.name, past, err)
							}
						}
						return
					}
					cancel()
					<-done.Done
					if !errors.Is(done.Err, backend.ErrInvalid) || !strings.Contains(done.Err.Error(), o.name) {
						t.Errorf("%s with %s: %v, want that this is refused", u.what, o.name, done.Err)
					}
				})
			}
		}
	}
}

// An option is one that is set, and shows says what is missing of its effect while it is in use.
type option struct {
	*elect.Options
	name  string
	shows func(c *memory.Coordinator, u use) string
}

func options(column string) []option {
	stands := func(text string) func(*memory.Coordinator, use) string {
		return func(c *memory.Coordinator, u use) string {
			all := c.Members(u.line)
			for _, m := range all {
				if strings.Contains(m.Value, text) {
					return ""
				}
			}
			return "nobody in the line shows " + text
		}
	}
	var log lockedBuffer
	var events, asked atomic.Int64
	set := func(o elect.Options) *elect.Options { o.ID = "me"; return &o }
	happens := func(n *atomic.Int64) func(*memory.Coordinator, use) string {
		return func(*memory.Coordinator, use) string {
			if n.Load() == 0 {
				return "it was not called"
			}
			return ""
		}
	}
	nothing := func(*memory.Coordinator, use) string { return "" }
	switch column {
	case "ID":
		return []option{
			{set(elect.Options{}), "ID", stands("me")},
			{set(elect.Options{Margin: time.Second, ResignTimeout: time.Second}), "Margin", stands("me")},
			{set(elect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}), "Logger", func(*memory.Coordinator, use) string {
				if log.String() == "" {
					return "nothing is logged"
				}
				return ""
			}},
			{set(elect.Options{Trace: func(trace.Event) { events.Add(1) }}), "Trace", happens(&events)},
		}
	case "Value":
		return []option{{set(elect.Options{Value: "my value"}), "Value", stands("my value")}}
	case "Ready":
		return []option{
			{set(elect.Options{Ready: func(context.Context) error { asked.Add(1); return nil }}), "Ready", happens(&asked)},
			{set(elect.Options{Priority: 7}), "Priority", stands("7")},
			{set(elect.Options{Site: "north"}), "Site", stands("north")},
		}
	}
	return []option{{set(elect.Options{History: 3}), "History", nothing}}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// table returns the cells of the page's table, by how the row begins.
func table(t *testing.T) map[string][]string {
	page, err := os.ReadFile("../../../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "| | ID, Margin, ResignTimeout, Logger, Trace | Value | Ready, Priority, Site | History |\n|---|---|---|---|---|\n")
	if !ok {
		t.Fatal("docs/recipes.md lacks the table of options")
	}
	rows := make(map[string][]string)
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		if len(cells) != 5 {
			break
		}
		first, _, _ := strings.Cut(cells[0], ",")
		rows[first] = cells[1:]
	}
	known := make(map[string]bool)
	for _, u := range uses {
		if rows[u.row] == nil {
			t.Fatalf("docs/recipes.md has no row of %s", u.row)
		}
		known[u.row] = true
	}
	if len(rows) != len(known) {
		t.Errorf("docs/recipes.md has %d rows, of which %d are tested", len(rows), len(known))
	}
	return rows
}

// Readers hold a lock together, so no history is kept of them, also if it is one of writers.
func TestHistoryOfReaders(t *testing.T) {
	bubble.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := bubble.Client(t, c, "a")
		h, err := lock.NewRWMutex(b, name, &elect.Options{ID: "me", History: 3}).RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h.Unlock(t.Context())
		if past, err := operate.New(b, name, "").History(t.Context()); err != nil || len(past) != 0 {
			t.Errorf("%+v, %v", past, err)
		}
	})
}
