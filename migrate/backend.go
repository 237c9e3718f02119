package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// scheme is that of the URLs, and the Backend of a [backend.Error].
const scheme = "migrate"

// Options are the settings of a [Backend]. From and To are required.
type Options struct {
	// From and To are the addresses of the two coordinators, as the records of the
	// election and errors name them: the URLs to run a process with. Two URLs that
	// differ in the order of hosts or in parameters mean the same coordinator, but for
	// Consul's dc, namespace and partition. They must hold no secret.
	From, To string
	// ID restricts the process to the migration with this ID, or whose ID begins with it
	// and a "-", as that of one does which it begins: what follows is made up, so that no
	// two have one ID. Empty means any between these coordinators.
	ID string
	// Patience is how long a process that is first on From, and so keeps others
	// from leading there, tries to get its place on To; then it gives the one on
	// From back and joins at the end. Zero means three session times of To, 15
	// seconds at least: a former leader's place on To may stand for one or two.
	Patience time.Duration
	// Begin has a process that joins an election begin its migration, where nobody has:
	// for who rolls out a migration in one go. It says that the election is in use on
	// From and nowhere else, as [Backend.Begin] does, which also checks. No other
	// process may say the opposite. Without it, joining fails with [ErrNotBegun].
	Begin bool
	// Logger gets what a person wants to know: places taken and given back, and the
	// cutover. Nil discards.
	Logger *slog.Logger
}

// A Backend is two coordinators that an election moves between, as one. It is safe
// for concurrent use.
type Backend struct {
	sub [2]backend.Backend // by side
	o   Options
	log *slog.Logger
	err error // what is wrong with the arguments; returned by every call

	opening chan struct{} // holds one while a session is being opened

	mu      sync.Mutex
	session *session
	closed  bool
}

var (
	_ backend.Backend = (*Backend)(nil)
	_ backend.Holder  = (*Backend)(nil)
)

// New returns a backend for elections that move between from and to, of which it is
// the owner from now on: Close closes both. It does not block and does not talk to
// the coordinators. Options that are not possible are reported by the first call.
func New(from, to backend.Backend, o *Options) *Backend {
	b := &Backend{sub: [2]backend.Backend{from, to}, opening: make(chan struct{}, 1)}
	if o != nil {
		b.o = *o
	}
	b.log = b.o.Logger
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	switch {
	case from == nil || to == nil:
		b.err = fmt.Errorf("%w: New was given no backend", backend.ErrInvalid)
	case b.o.From == "" || b.o.To == "":
		b.err = fmt.Errorf("%w: Options From and To are needed: the addresses of the two coordinators", backend.ErrInvalid)
	case sameAddress(b.o.From, b.o.To):
		b.err = fmt.Errorf("%w: From and To, %s and %s, are one coordinator", backend.ErrInvalid, b.o.From, b.o.To)
	case b.o.Patience < 0:
		b.err = fmt.Errorf("%w: Patience %v is negative", backend.ErrInvalid, b.o.Patience)
	}
	return b
}

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &backend.Error{Backend: scheme, Op: op, Name: name, Err: err}
}

// Session returns the live session and opens one where there is none: a session
// with each coordinator, at the same time; see [backend.Backend]. Where From cannot be
// reached it returns one with To alone, which is good for elections whose record on
// To says that they have moved; any other call tries From again, or ends it.
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.live(ctx)
	if err != nil {
		return nil, wrap("session", "", err)
	}
	return s, nil
}

func (b *Backend) live(ctx context.Context) (*session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if b.err != nil {
		return nil, b.err
	}
	select {
	case b.opening <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-b.opening }()
	b.mu.Lock()
	s, closed := b.session, b.closed
	b.mu.Unlock()
	switch {
	case closed:
		return nil, backend.ErrClosed
	case s != nil && s.alive() == nil:
		return s, nil
	case s != nil:
		// What it had with the coordinator that did not end it must be over first.
		select {
		case <-s.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.end(errClosed)
		return nil, backend.ErrClosed
	}
	b.session = s
	return s, nil
}

var errClosed = fmt.Errorf("%w: the backend was closed", backend.ErrSessionEnded)

func (b *Backend) open(ctx context.Context) (*session, error) {
	var subs [2]backend.Session
	var errs [2]error
	var wg sync.WaitGroup
	for sd, sub := range b.sub {
		wg.Go(func() { subs[sd], errs[sd] = sub.Session(ctx) })
	}
	wg.Wait()
	switch {
	case errs[sideTo] != nil:
		return nil, fmt.Errorf("%s: %w", b.o.To, errs[sideTo])
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errs[sideFrom] != nil && !errors.Is(errs[sideFrom], backend.ErrUnavailable):
		return nil, fmt.Errorf("%s: %w", b.o.From, errs[sideFrom])
	}
	return newSession(b, subs, errs[sideFrom]), nil
}

// Hold implements [backend.Holder]: the files are those of the coordinators on which m
// stands at the moment of the call.
func (b *Backend) Hold(m backend.Member) ([]*os.File, error) {
	files, err := b.hold(m)
	return files, wrap("hold", m.Line, err)
}

func (b *Backend) hold(m backend.Member) (files []*os.File, err error) {
	b.mu.Lock()
	s := b.session
	b.mu.Unlock()
	var p *place
	if s != nil {
		p = s.owned(m)
	}
	if p == nil {
		return nil, backend.ErrNotMember
	}
	for sd, sub := range b.sub {
		h, ok := sub.(backend.Holder)
		m := p.member(side(sd))
		if !ok || m.Key == "" || side(sd) == sideFrom && s.isOnlyTo(p) {
			continue
		}
		held, err := h.Hold(m)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, err
		}
		files = append(files, held...)
	}
	return files, nil
}

// Close ends the session and closes both backends, at the same time; see
// [backend.Backend].
func (b *Backend) Close() error {
	if b.err != nil {
		return nil
	}
	b.mu.Lock()
	b.closed = true
	s := b.session
	b.mu.Unlock()
	if s == nil {
		return wrap("close", "", b.closeSubs())
	}
	err := s.endBy(errClosed, b.closeSubs)
	<-s.over
	return wrap("close", "", err)
}

func (b *Backend) closeSubs() error {
	var errs [2]error
	var wg sync.WaitGroup
	for sd, sub := range b.sub {
		wg.Go(func() { errs[sd] = sub.Close() })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// patience returns Options Patience for a session of To with the given TTL.
func (b *Backend) patience(ttl time.Duration) time.Duration {
	if b.o.Patience > 0 {
		return b.o.Patience
	}
	return max(3*ttl, 15*time.Second)
}
