package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var cleanFlaws = []Flaw{
	{
		Name:    "leak",
		Breaks:  "G9: each Gone leaves a goroutine",
		Must:    "L3.again G9.goroutines G9.campaigns Fault.cut",
		May:     "Fault",
		session: func(b *Backend, s backend.Session) backend.Session { return &leak{s, b} },
	},
	{
		Name:    "no context",
		Breaks:  "G9: Get does not look at its context",
		Must:    "G9.ended-context G9.cut-context",
		Short:   true,
		session: func(_ *Backend, s backend.Session) backend.Session { return &noContext{s} },
	},
	{
		Name:   "stays",
		Breaks: "G9: Close does not end the session",
		Must:   "G9.members G8.close Fault.cut",
		May:    "G7.released G7.closed G9 Fault",
		closes: func(*Backend) error { return nil },
	},
	{
		Name:   "no goodbye",
		Breaks: "G8, G9: Close drops the connection and leaves the session to the coordinator",
		Must:   "G8.close G9.members",
		May:    "G7.released G9.goroutines",
		closes: func(b *Backend) error {
			b.Backend.(interface{ Kill() }).Kill()
			return nil
		},
	},
	{
		Name:   "nothing to close",
		Breaks: "G9: Close of a backend that has no session is an error",
		Must:   "G9.unused",
		// The backend knows its sessions because they are wrapped.
		session: func(_ *Backend, s backend.Session) backend.Session { return s },
		closes: func(b *Backend) error {
			b.mu.Lock()
			unused := len(b.sessions) == 0
			b.mu.Unlock()
			if err := b.Backend.Close(); err != nil || !unused {
				return err
			}
			return backend.ErrSessionEnded
		},
	},
	{
		Name:   "leaking session",
		Breaks: "G9: each session leaves the goroutine that renewed it",
		Must:   "G9.goroutines G9.ended-goroutines G9.cut-close",
		May:    "Fault",
		session: func(b *Backend, s backend.Session) backend.Session {
			go func() { <-b.release }()
			return s
		},
	},
	{
		Name:   "dials without end",
		Breaks: "G9: Session does not look at its context",
		Must:   "G9.ended-context G9.cut-session",
		Short:  true,
		opens: func(ctx context.Context, b *Backend) (backend.Session, error) {
			return b.Backend.Session(context.WithoutCancel(ctx))
		},
	},
	{
		Name:    "waits for the goodbye",
		Breaks:  "G9: Close of a session waits for the coordinator as long as it likes",
		Must:    "G9.cut-close",
		Short:   true,
		May:     "G6.cut",
		session: func(_ *Backend, s backend.Session) backend.Session { return &waitsForTheGoodbye{s} },
	},
}

type leak struct {
	backend.Session
	b *Backend
}

func (s *leak) Gone(ctx context.Context, m backend.Member) error {
	go func() { <-s.b.release }()
	return s.Session.Gone(ctx, m)
}

type noContext struct{ backend.Session }

func (s *noContext) Get(ctx context.Context, name string) (backend.Record, error) {
	return s.Session.Get(context.WithoutCancel(ctx), name)
}

type waitsForTheGoodbye struct{ backend.Session }

func (s *waitsForTheGoodbye) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.TTL())
	defer cancel()
	return s.Session.Close(ctx)
}
