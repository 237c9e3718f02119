package broken

import (
	"context"
	"slices"
	"sync"

	"github.com/succession-dev/succession/backend"
)

var taskFlaws = []Flaw{
	{
		Name:   "own records",
		Breaks: "Records: List and ReadAll show those alone that the session has written",
		Must:   "Task.cold Task.workers",
		May:    "Records L7.folder",
		session: func(_ *Backend, s backend.Session) backend.Session {
			return &ownRecords{Session: s, own: make(map[string]bool)}
		},
	},
}

type ownRecords struct {
	backend.Session
	mu  sync.Mutex
	own map[string]bool
}

func (s *ownRecords) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	v, err := s.Session.Put(ctx, name, value, cond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[name] = s.own[name] || err == nil
	return v, err
}

func (s *ownRecords) List(ctx context.Context, dir string) ([]string, error) {
	names, err := s.Session.List(ctx, dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(names, func(name string) bool { return !s.own[name] }), err
}

func (s *ownRecords) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	records, err := s.Session.ReadAll(ctx, dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(records, func(r backend.Record) bool { return !s.own[r.Name] }), err
}
