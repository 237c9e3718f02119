package kit

import (
	"context"
	"sync"
)

// maxBacklog is how long a [Backlog] may be before joins have to wait.
const maxBacklog = 32

// A Backlog counts the members that a session still has to remove from lines: they stand, or may
// come to stand, and no caller wants them. While there are many, no join of the session begins. So
// callers that come and go faster than the coordinator answers slow down each other, and the line
// stays short for everybody else. The zero Backlog is empty. It is safe for concurrent use.
type Backlog struct {
	mu    sync.Mutex
	n     int
	short chan struct{} // closed when it is short again; nil if it is
}

// add adds n, which may be negative.
func (b *Backlog) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += n
	switch {
	case b.n >= maxBacklog && b.short == nil:
		b.short = make(chan struct{})
	case b.n < maxBacklog && b.short != nil:
		close(b.short)
		b.short = nil
	}
}

// await blocks while there are many.
func (b *Backlog) await(ctx context.Context) error {
	for {
		b.mu.Lock()
		short := b.short
		b.mu.Unlock()
		if short == nil {
			return nil
		}
		select {
		case <-short:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
