package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var itemFlaws = []Flaw{
	{
		Name:    "lent items",
		Breaks:  "L10: an item goes with the session that appended it",
		Must:    "L10.append Task.workers",
		May:     "L10",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lentItems{s} },
	},
	{
		Name:    "remove without a guard",
		Breaks:  "L10: Remove does not look at the member that is to stand",
		Must:    "L10.remove L10.ended Queue.removed",
		session: func(_ *Backend, s backend.Session) backend.Session { return &removeUnguarded{s} },
	},
	{
		Name:    "remove the first",
		Breaks:  "L10: Remove takes out the item at the head, whichever it is",
		Must:    "L10.remove Queue.full",
		May:     "L10.lost-answer",
		session: func(_ *Backend, s backend.Session) backend.Session { return &removeFirst{s} },
	},
	{
		Name:    "append twice",
		Breaks:  "L10: after a lost answer the item is appended again",
		Must:    "L10.lost-answer Queue.lost-answer Task.workers-lost-answer",
		session: func(b *Backend, s backend.Session) backend.Session { return &appendTwice{s, b} },
	},
}

type lentItems struct{ backend.Session }

func (s *lentItems) Append(ctx context.Context, line, value string) (backend.Member, error) {
	j, err := s.Join(ctx, line, value, "")
	return j.Member, err
}

type removeUnguarded struct{ backend.Session }

func (s *removeUnguarded) Remove(ctx context.Context, m, _ backend.Member) error {
	return s.Leave(ctx, m)
}

type removeFirst struct{ backend.Session }

func (s *removeFirst) Remove(ctx context.Context, m, by backend.Member) error {
	l, err := s.Line(ctx, m.Line)
	if err == nil && len(l.Members) > 0 && l.Members[0].Pinned {
		m = l.Members[0]
	}
	return s.Session.Remove(ctx, m, by)
}

type appendTwice struct {
	backend.Session
	b *Backend
}

func (s *appendTwice) Append(ctx context.Context, line, value string) (backend.Member, error) {
	if s.b.takeLost() {
		_, _ = s.Session.Append(ctx, line, value)
	}
	return s.Session.Append(ctx, line, value)
}
