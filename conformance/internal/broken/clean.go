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
		session: func(_ *Backend, s backend.Session) backend.Session { return &noContext{s} },
	},
	{
		Name:   "stays",
		Breaks: "G9: Close does not end the session",
		Must:   "G9.members G8.close Fault.cut",
		May:    "G7.closed G9 Fault",
		closes: func(*Backend) error { return nil },
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
