package broken

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/election"
)

var guardFlaws = []Flaw{
	{
		Name:    "no guard",
		Breaks:  "G3: the member in the condition of a write is not looked at",
		Must:    "Records.guard G3.resigned G3.removed G3.dropped Task.replaced Task.result Value.guarded",
		session: func(_ *Backend, s backend.Session) backend.Session { return &noGuard{s} },
	},
	{
		Name:    "checked guard",
		Breaks:  "G3: the member in the condition of a write is looked at before the write is sent, at the version that it finds then",
		Must:    "G3.held-left G3.held-closed G3.held-expired G3.held-killed G3.held-removed G3.held-dropped",
		session: func(b *Backend, s backend.Session) backend.Session { return &checkedGuard{Session: s, b: b} },
	},
	{
		Name:   "stamped by who leaves",
		Breaks: "G3: as in checked guard, but whoever leaves, is closed or has crashed changes the versions first, and what an operator deletes does not",
		Must:   "G3.held-expired G3.held-removed G3.held-dropped",
		session: func(b *Backend, s backend.Session) backend.Session {
			return &checkedGuard{Session: s, b: b, stamped: true}
		},
	},
	{
		Name:     "check, then write",
		Breaks:   "G3: a term's Put asks whether it leads and then writes until that is done, without a guard",
		Must:     "G3.expired G3.removed G3.late",
		election: terms(func(b backend.Backend, t election.Term) election.Term { return &checkThenWrite{t, b} }),
	},
	{
		Name:     "own record alone",
		Breaks:   "G3: a term's Put refuses the election's own record, and writes below it what is taken for a member",
		Must:     "G3.own",
		election: terms(func(b backend.Backend, t election.Term) election.Term { return &ownRecordAlone{t, b} }),
	},
	{
		Name:     "any version",
		Breaks:   "G3: a term's Put looks at the member and not at the version",
		Must:     "G3.standing",
		election: terms(func(_ backend.Backend, t election.Term) election.Term { return &anyVersion{t} }),
	},
}

type noGuard struct{ backend.Session }

func (s *noGuard) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond != nil {
		cond = &backend.If{Version: cond.Version}
	}
	return s.Session.Put(ctx, name, value, cond)
}

type checkedGuard struct {
	backend.Session
	b       *Backend
	stamped bool        // a late write is refused if left is set, or if the client has crashed
	left    atomic.Bool // the session has left, or has been closed
}

// sends says that a guarded write is sent. If the write is held back, it is done when it arrives.
func (s *checkedGuard) sends(write func(ctx context.Context, now backend.Session)) {
	s.b.holdsBack(func() {
		ctx, by := context.Background(), s.b.Anew()
		defer by.Close()
		now, err := by.Session(ctx)
		if err == nil && !(s.stamped && (s.left.Load() || s.b.hasCrashed())) {
			write(ctx, now)
		}
	})
}

func (s *checkedGuard) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	if cond == nil || cond.Member == (backend.Member{}) {
		return s.Session.Put(ctx, name, value, cond)
	}
	r, err := s.Session.Get(ctx, name)
	if err != nil {
		return 0, err
	}
	s.sends(func(ctx context.Context, now backend.Session) {
		_, _ = now.Put(ctx, name, value, &backend.If{Version: r.Version})
	})
	return s.Session.Put(ctx, name, value, cond)
}

func (s *checkedGuard) Leave(ctx context.Context, m backend.Member) error {
	s.left.Store(true)
	return s.Session.Leave(ctx, m)
}

func (s *checkedGuard) Close(ctx context.Context) error {
	s.left.Store(true)
	return s.Session.Close(ctx)
}

type checkThenWrite struct {
	election.Term
	b backend.Backend
}

func (t *checkThenWrite) Put(ctx context.Context, record string, value []byte, at backend.Version) (backend.Version, error) {
	if t.Check() != nil || !strings.HasPrefix(record, t.Member().Line+"-") {
		return t.Term.Put(ctx, record, value, at) // refused
	}
	for {
		v, err := t.write(ctx, record, value, at)
		if ctx.Err() != nil || !errors.Is(err, backend.ErrUnavailable) && !errors.Is(err, backend.ErrSessionEnded) {
			return v, err
		}
	}
}

func (t *checkThenWrite) write(ctx context.Context, record string, value []byte, at backend.Version) (backend.Version, error) {
	s, err := t.b.Session(ctx)
	if err != nil {
		return 0, err
	}
	return s.Put(ctx, record, value, &backend.If{Version: at})
}

type ownRecordAlone struct {
	election.Term
	b backend.Backend
}

func (t *ownRecordAlone) Put(ctx context.Context, record string, value []byte, at backend.Version) (backend.Version, error) {
	if !strings.HasPrefix(record, t.Member().Line+"/") {
		return t.Term.Put(ctx, record, value, at)
	}
	s, err := t.b.Session(ctx)
	if err != nil {
		return 0, err
	}
	return s.Put(ctx, record, value, &backend.If{Version: at, Member: t.Member()})
}

type anyVersion struct{ election.Term }

func (t *anyVersion) Put(ctx context.Context, record string, value []byte, _ backend.Version) (backend.Version, error) {
	return t.Term.Put(ctx, record, value, backend.Any)
}
