package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/recipes"
)

// ErrBackwards says that a position is smaller than the one that is recorded.
var ErrBackwards = errors.New("a position never goes back")

// A Run is one run of a task by one machine. It ends for good when its function returns. Token is
// larger than that of every earlier run of the task, and Put writes a record only while no other
// machine can run the task. It is safe for concurrent use.
type Run struct {
	recipes.Hold
	// Task is the name of the task.
	Task string

	ctx    context.Context
	as     definition // what the record of the task says of this run
	record string     // the name of the record with the position

	mu  sync.Mutex
	now progress
	at  backend.Version // the version of now; 0 if now may be out of date
}

// A progress is the record of a task's position and of its newest run.
type progress struct {
	Position uint64    `json:"position"`
	Text     string    `json:"text,omitempty"`
	Token    uint64    `json:"token"`
	ID       string    `json:"id"`
	Since    time.Time `json:"since"` // by the machine's own clock
	Error    string    `json:"error,omitempty"`
}

// Context returns the context that was given to the function of the run.
func (r *Run) Context() context.Context { return r.ctx }

// Config returns the configuration of the task; see [Standby.Configure]. It stays the same for as
// long as the run lasts.
func (r *Run) Config() string { return r.as.Config }

// Check returns nil while the run may go on, and afterwards the cause of its context. It notices a
// pause of the process that no timer has noticed yet, as [elect.Term.Check] does. It does not block.
func (r *Run) Check() error { return overOf(r.ctx, r.Term()) }

// Position returns the recorded position: at first the last one of the run before, or 0 if there
// was none, and later what Commit has recorded. It does not block.
func (r *Run) Position() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.Position
}

// Commit records the position, which must not be smaller than the one that is recorded; otherwise
// Commit fails with [ErrBackwards]. The coordinator writes only if this machine still stands first
// in the task's line, in one atomic step. So once another machine can run the task, Commit fails
// with [elect.ErrLost], whatever clocks do.
//
// Commit blocks for about a round trip. While the coordinator cannot be reached, it tries on until
// ctx or the session ends. After any other error than ErrBackwards the position may have been
// recorded. Only the machine's place counts: after the end of the run's context, Commit with
// another context can still record how far the work has come.
func (r *Run) Commit(ctx context.Context, position uint64) error {
	return r.commit(ctx, position, "")
}

func (r *Run) commit(ctx context.Context, position uint64, text string) error {
	return r.update(ctx, func(p *progress) error {
		if position < p.Position {
			return fmt.Errorf("task: position %d of %s, after %d: %w", position, r.Task, p.Position, ErrBackwards)
		}
		p.Position, p.Text = position, text
		return nil
	})
}

// Text returns the text of the position that is recorded; see [Run.CommitText]. It does not block.
func (r *Run) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.Text
}

// CommitText is [Run.Commit] for a position that is more than a number: a file with an offset, or a
// set of transactions. text says what it is, in UTF-8 of at most [backend.MaxRecord] / 8 bytes.
// Only the number is compared with what was recorded before: give one that grows, such as a count
// of commits, or always 0. The next run begins with both.
func (r *Run) CommitText(ctx context.Context, position uint64, text string) error {
	if len(text) > backend.MaxRecord/8 || !utf8.ValidString(text) {
		return fmt.Errorf("task: %w text of a position of %s: it has %d bytes; at most %d of UTF-8 are possible", backend.ErrInvalid, r.Task, len(text), backend.MaxRecord/8)
	}
	return r.commit(ctx, position, text)
}

// begin records that this run begins. That also proves that the position which was read is the last
// one of the run before.
func (r *Run) begin(ctx context.Context, id string) error {
	since := time.Now().Round(0)
	return r.update(ctx, func(p *progress) error {
		p.Token, p.ID, p.Since, p.Error = r.Token(), id, since, ""
		return nil
	})
}

// failed tries to record the error with which the run has ended.
func (r *Run) failed(ctx context.Context, why error) {
	_ = r.update(ctx, func(p *progress) error {
		p.Error = textOf(why)
		return nil
	})
}

// textOf returns what a record says of an error, which is never nothing: up to a thousand characters.
func textOf(err error) string {
	return cmp.Or(fmt.Sprintf("%.1000s", strings.ToValidUTF8(err.Error(), "?")), "an error without text")
}

// update changes the record on condition that it is as change has seen it, and that the machine
// stands first. It calls change again if an answer was lost, or somebody else has written.
func (r *Run) update(ctx context.Context, change func(*progress) error) error {
	return insist(ctx, func() error {
		p, at, err := r.recorded(ctx)
		if err != nil {
			return guarded(r.Term(), err)
		}
		if err := change(&p); err != nil {
			return err
		}
		at, err = r.Put(ctx, r.record, encode(p), at)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil {
			r.at = 0
			return guarded(r.Term(), err)
		}
		r.now, r.at = p, at
		return nil
	})
}

// recorded returns the record as it is known, or reads it.
func (r *Run) recorded(ctx context.Context) (progress, backend.Version, error) {
	r.mu.Lock()
	p, at := r.now, r.at
	r.mu.Unlock()
	if at != 0 {
		return p, at, nil
	}
	got, err := r.Get(ctx, r.record)
	if err == nil {
		p, err = decode[progress](got)
	}
	return p, got.Version, err
}
