package broken

import (
	"context"
	"errors"
	"strings"

	"github.com/succession-dev/succession/backend"
)

var valueFlaws = []Flaw{
	{
		Name:    "trim",
		Breaks:  "L8: values are stored without surrounding space",
		Must:    "L8.intact",
		session: func(_ *Backend, s backend.Session) backend.Session { return &trim{s} },
	},
	{
		Name:    "refused, and done",
		Breaks:  "L8: a value is checked when its member has joined",
		Must:    "L8.invalid",
		session: func(_ *Backend, s backend.Session) backend.Session { return &doneFirst{s} },
	},
	{
		Name:    "list of anything",
		Breaks:  "L8: List does not check the name, and finds nothing under it",
		Must:    "L8.invalid",
		session: func(_ *Backend, s backend.Session) backend.Session { return &listOfAnything{s} },
	},
	{
		Name:    "modify index",
		Breaks:  "L8: the position of a member is that of its last change",
		Must:    "L8.kept",
		May:     "Pin Run.sealed Run.sealed-gate L10",
		session: func(_ *Backend, s backend.Session) backend.Session { return &modifyIndex{s} },
	},
}

type trim struct{ backend.Session }

func (s *trim) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.Session.Join(ctx, line, strings.TrimSpace(value), record)
}

type doneFirst struct{ backend.Session }

func (s *doneFirst) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if errors.Is(err, backend.ErrInvalid) {
		_, _ = s.Session.Join(ctx, line, strings.ToValidUTF8(value, ""), record)
	}
	return m, err
}

type listOfAnything struct{ backend.Session }

func (s *listOfAnything) List(ctx context.Context, dir string) ([]string, error) {
	if backend.CheckName(dir) != nil {
		return nil, s.Err()
	}
	return s.Session.List(ctx, dir)
}

type modifyIndex struct{ backend.Session }

// Line relies on the record that Pin writes in the same step.
func (s *modifyIndex) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	for i, m := range l.Members {
		if m.Pinned {
			l.Members[i].Position = uint64(l.Version)
		}
	}
	return l, err
}
