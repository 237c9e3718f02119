package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/clock"
	"github.com/succession-dev/succession/internal/history"
)

// standTick is how often the candidate of Stand asks whether it leads.
const standTick = 5 * time.Millisecond

// errInputEnded is why Stand ends.
var errInputEnded = errors.New("the end of the input")

// Stand is a candidate of the election for as long as in lasts: it campaigns, leads
// until its term is over, and campaigns again. It is the whole work of the command
// that [Faults] Process returns; b is its own, and the caller closes it.
//
// What it does is written to out, in lines of JSON, for the process that reads it on
// the same machine: times are those of this machine's wall clock when Stand was called,
// counted on by the monotonic clock. Commands are read from in, one a line:
//
//	resign          resigns the term of now, if there is one
//	suspend 20s     behaves as if the machine had been suspended for so long. On Linux it then
//	                waits for the context of the term, and asks no more whether it leads
//
// At the end of in it resigns and returns nil. It blocks until then, until ctx ends,
// until a campaign fails, or until a command is not understood or out not written.
// The reading of in ends with in, and not before.
func Stand(ctx context.Context, b backend.Backend, election, id string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	now := time.Now()
	s := &stander{zero: now.Add(-time.Duration(now.UnixNano()))}
	n := &noter{
		log:  history.NewRecorder(func() time.Duration { return time.Since(s.zero) }, out),
		zero: s.zero, election: election, id: id,
	}
	go func() { cancel(s.obey(in)) }()
	err := s.stand(ctx, n, elect.New(b, election, &elect.Options{ID: id, Trace: n.trace}))
	if errors.Is(err, errInputEnded) {
		err = nil
	}
	return errors.Join(err, n.log.Err())
}

// A stander is the state of Stand.
type stander struct {
	zero time.Time // of the history's clock

	suspended atomic.Bool // in the present term, where its context is to tell

	mu     sync.Mutex
	resign func() // has the present term resigned; nil for none
}

func (s *stander) stand(ctx context.Context, n *noter, e *elect.Election) error {
	for {
		term, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		s.suspended.Store(false)
		resigning := make(chan struct{})
		s.leads(sync.OnceFunc(func() { close(resigning) }))
		_ = n.reigns(ctx, term, watch{tick: standTick, won: func() {}, resign: resigning, suspended: &s.suspended})
		s.leads(nil)
		_ = term.Resign(ctx) // where it fails the session ends
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func (s *stander) leads(resign func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resign = resign
}

// obey reads commands until the end, and returns why it ended.
func (s *stander) obey(in io.Reader) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		command, argument, _ := strings.Cut(lines.Text(), " ")
		d, err := time.ParseDuration(argument)
		switch {
		case command == "resign" && argument == "":
			s.mu.Lock()
			if s.resign != nil {
				s.resign()
			}
			s.mu.Unlock()
		case command == "suspend" && err == nil:
			s.suspended.Store(runtime.GOOS == "linux") // whose timers count suspension
			clock.Suspend(d)
		default:
			return fmt.Errorf("conformance: %q is no command of Stand", lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("conformance: the input of Stand: %w", err)
	}
	return errInputEnded
}
