package broken

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// ProcessFlaws are the flaws that show only if candidates are processes of their own, on a backend
// whose members the kernel holds. If rules need deadlines, its sessions have leases that are kept
// by package clock.
var ProcessFlaws = []Flaw{
	{
		Name:    "lock file",
		Breaks:  "G8: who leads writes a file, and who is killed does not remove it",
		Must:    "Fault.killed-process",
		May:     "Fault.suspended",
		session: func(_ *Backend, s backend.Session) backend.Session { return &lockFile{s} },
	},
	{
		Name:    "health check",
		Breaks:  "G1: who stands behind a process that is stopped takes it for dead",
		Must:    "Fault.stopped",
		session: func(_ *Backend, s backend.Session) backend.Session { return &healthCheck{s} },
	},
	{
		Name:   "suspended clock",
		Breaks: "L6, G1: the deadline is kept by a clock that stands still while the machine is suspended",
		Must:   "Fault.suspended",
		session: func(_ *Backend, s backend.Session) backend.Session {
			if s.TTL() == 0 {
				return s
			}
			return &unaware{s}
		},
	},
}

type lockFile struct{ backend.Session }

func (s *lockFile) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || !p.First {
		return p, err
	}
	_, err = s.Put(ctx, m.Line+"-lock", []byte(m.Key), &backend.If{Version: backend.Absent})
	if !errors.Is(err, backend.ErrVersion) {
		return p, err
	}
	r, err := s.Get(ctx, m.Line+"-lock")
	if holder := string(r.Value); err == nil && holder != m.Key {
		p = backend.Place{Ahead: backend.Member{Line: m.Line, Key: holder}}
	}
	return p, err
}

func (s *lockFile) Gone(ctx context.Context, m backend.Member) error {
	if err := s.Session.Gone(ctx, m); err != nil {
		return err
	}
	r, err := s.Get(ctx, m.Line+"-lock")
	for err == nil && string(r.Value) == m.Key {
		r, err = s.Watch(ctx, m.Line+"-lock", r.Version)
	}
	return err
}

func (s *lockFile) Leave(ctx context.Context, m backend.Member) error {
	r, err := s.Get(ctx, m.Line+"-lock")
	if err == nil && string(r.Value) == m.Key {
		err = s.Delete(ctx, m.Line+"-lock", &backend.If{Version: r.Version})
	}
	return errors.Join(err, s.Session.Leave(ctx, m))
}

type healthCheck struct{ backend.Session }

func (s *healthCheck) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	m, err := s.Session.Join(ctx, line, value, record)
	if err != nil {
		return m, err
	}
	if _, err = s.Put(ctx, line+"-process/"+m.Key, []byte(strconv.Itoa(os.Getpid())), nil); err != nil {
		_ = s.Leave(context.WithoutCancel(ctx), m.Member) // otherwise it would be a ghost, which is another flaw
	}
	return m, err
}

func (s *healthCheck) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	p, err := s.Session.Ahead(ctx, m)
	if err != nil || p.First {
		return p, err
	}
	r, err := s.Get(ctx, m.Line+"-process/"+p.Ahead.Key)
	if err == nil && stopped(string(r.Value)) {
		p = backend.Place{First: true, Token: m.Position}
	}
	return p, err
}

// stopped reports whether the process with that number is stopped: its state, which
// follows its name in parentheses, is T (proc_pid_stat(5)).
func stopped(pid string) bool {
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	return strings.Contains(string(stat), ") T ")
}
