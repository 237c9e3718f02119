package broken

import (
	"context"

	"github.com/succession-dev/succession/backend"
)

var itemFlaws = []Flaw{
	{
		Name:    "late append",
		Breaks:  "L10: an Append whose request is lost is sent again, and the first one, which comes late, appends another item",
		Must:    "L10.held",
		session: func(b *Backend, s backend.Session) backend.Session { return &lateAppend{s, b} },
	},
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
	{
		Name:    "claims without a look",
		Breaks:  "L10: Claim looks neither at the item nor at other claims",
		Must:    "L10.claim L10.claim-lost",
		May:     "Queue",
		session: func(_ *Backend, s backend.Session) backend.Session { return &claimsBlindly{s} },
	},
	{
		Name:    "claim twice",
		Breaks:  "L10: after a lost answer the item is claimed again, beside the claim that stands",
		Must:    "L10.claim-lost",
		session: func(b *Backend, s backend.Session) backend.Session { return &claimTwice{s, b} },
	},
	{
		Name:    "claimed items are free",
		Breaks:  "L10: Free returns the first item, whether it is claimed or not",
		Must:    "L10.claim Queue.crash",
		May:     "Queue",
		session: func(_ *Backend, s backend.Session) backend.Session { return &freeFirst{s} },
	},
	{
		Name:    "free reads all",
		Breaks:  "L10: Free asks for each item of the line",
		Must:    "Queue.cost",
		session: func(_ *Backend, s backend.Session) backend.Session { return &freeReadsAll{s} },
	},
	{
		Name:    "looks before it claims",
		Breaks:  "L10: Claim reads the claims before it adds its own, and once more",
		Must:    "Queue.cost",
		session: func(_ *Backend, s backend.Session) backend.Session { return &looksBeforeItClaims{s} },
	},
	{
		Name:    "looks before it appends",
		Breaks:  "L10: Append reads the items before it adds its own",
		Must:    "Queue.put",
		session: func(_ *Backend, s backend.Session) backend.Session { return &looksBeforeItAppends{s} },
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

type claimsBlindly struct{ backend.Session }

func (s *claimsBlindly) Claim(ctx context.Context, line, value, record string, _ backend.Member) (backend.Joined, error) {
	return s.JoinShared(ctx, line, value, record)
}

type claimTwice struct {
	backend.Session
	b *Backend
}

func (s *claimTwice) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	if s.b.takeLost() {
		_, _ = s.JoinShared(ctx, line, value, record)
		return s.JoinShared(ctx, line, value, record)
	}
	return s.Session.Claim(ctx, line, value, record, item)
}

type freeFirst struct{ backend.Session }

func (s *freeFirst) Free(ctx context.Context, items, _ string) (backend.Member, error) {
	l, err := s.Head(ctx, items)
	if err == nil && len(l.Members) == 0 {
		err = backend.ErrTaken
	}
	if err != nil {
		return backend.Member{}, err
	}
	return l.Members[0], nil
}

type freeReadsAll struct{ backend.Session }

func (s *freeReadsAll) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	l, err := s.Line(ctx, items)
	for _, m := range l.Members {
		if _, err := s.Get(ctx, items+"-"+m.Key); err != nil {
			return m, err
		}
	}
	if err != nil {
		return backend.Member{}, err
	}
	return s.Session.Free(ctx, items, claims)
}

type looksBeforeItClaims struct{ backend.Session }

func (s *looksBeforeItClaims) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	for range 2 {
		if _, err := s.Line(ctx, line); err != nil {
			return backend.Joined{}, err
		}
	}
	return s.Session.Claim(ctx, line, value, record, item)
}

type looksBeforeItAppends struct{ backend.Session }

func (s *looksBeforeItAppends) Append(ctx context.Context, line, value string) (backend.Member, error) {
	if _, err := s.Line(ctx, line); err != nil {
		return backend.Member{}, err
	}
	return s.Session.Append(ctx, line, value)
}

type lateAppend struct {
	backend.Session
	b *Backend
}

func (s *lateAppend) Append(ctx context.Context, line, value string) (backend.Member, error) {
	lost := s.b.holdsBack(func() { _, _ = s.Session.Append(context.Background(), line, value) })
	m, err := s.Session.Append(ctx, line, value)
	if lost && err != nil {
		return s.Session.Append(ctx, line, value)
	}
	return m, err
}
