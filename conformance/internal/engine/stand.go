package engine

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
	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/history"
)

// standTick is how often the candidate of Stand asks whether it leads.
const standTick = 5 * time.Millisecond

// errInputEnded is the cause when Stand ends because its input has.
var errInputEnded = errors.New("the end of the input")

// Stand does the work of conformance.Stand. It runs in the process of a [ProcessCandidate].
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

	suspended atomic.Bool // the machine was suspended in the present term; see watch

	mu     sync.Mutex
	resign func() // makes the candidate resign the present term; nil if there is none
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
		_ = n.watchOver(ctx, term, watch{tick: standTick, won: func() {}, resign: resigning, suspended: &s.suspended})
		s.leads(nil)
		_ = term.Resign(ctx) // if it fails, the session ends
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

// obey reads and executes commands until in ends. It returns why it stopped.
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
