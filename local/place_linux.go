package local

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/again"
)

// WatchPlace blocks until m stands otherwise than p says; see [backend.Session]. Behind
// a member that is not pinned it takes one descriptor. While nothing changes it does nothing.
func (s *session) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	if p.First || p.Ahead.Pinned {
		s.finish(m)
		return s.watchHeader(ctx, m, p)
	}
	file, err := s.dir.openFIFO(p.Ahead)
	if errors.Is(err, os.ErrNotExist) {
		return again.Ahead(ctx, s, m, p)
	}
	if err != nil {
		return err
	}
	bell, wake, stop := s.wakeReader(file, s.dir.fifo(p.Ahead.Line, p.Ahead.Position), s.dir.fifo(m.Line, m.Position))
	defer context.AfterFunc(ctx, wake)()
	first := false
	defer func() {
		end := func() {
			stop()
			file.Close() // the last process that closes a removed FIFO may wait for the disk
		}
		if !first || !s.putOff(m, end) {
			end()
		}
	}()

	let := false // whether the process of the member ahead has let go: then only a pin keeps it in line
	for {
		// As in Gone: what follows sees what a wake before this line was about.
		if err := file.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if ctx.Err() != nil { // as when the session ends
			return context.Cause(ctx)
		}
		s.learnHead(m, p.Ahead, file)
		if moved, err := s.lookAgain(ctx, m, p, let); err != nil || moved {
			first = p.First
			return err
		}
		if let {
			<-bell // rings also when ctx or the session ends
			continue
		}
		if let, err = awaitEnd(file); err != nil {
			return err
		}
	}
}

// lookAgain reports whether m stands otherwise than p says, and then sets p.
// let says that the process of the member ahead has let go.
func (s *session) lookAgain(ctx context.Context, m backend.Member, p *backend.Place, let bool) (moved bool, err error) {
	var now backend.Place
	if let {
		now, err = s.settledPlace(ctx, m, p.Ahead.Position)
	} else {
		now, err = s.Ahead(ctx, m)
	}
	if err != nil {
		return false, err
	}
	if moved = now.First || now.Ahead != p.Ahead; moved {
		*p = now
	}
	return moved, nil
}

// putOff delays the last work of WatchPlace until m is watched again, or leaves, because m is about
// to lead. It reports false if the session does not hold m.
func (s *session) putOff(m backend.Member, end func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.places[m.Position]
	if own == nil || own.rest != nil {
		return false
	}
	own.rest = end
	return true
}

// finish does the delayed work for m.
func (s *session) finish(m backend.Member) {
	s.mu.Lock()
	own := s.places[m.Position]
	if own == nil || own.rest == nil {
		s.mu.Unlock()
		return
	}
	end := own.rest
	own.rest = nil
	s.mu.Unlock()
	end()
}

// watchHeader is WatchPlace for a member that is first, or behind a pinned one: that stays when the
// election moves, so only the header says that it has (law L3).
func (s *session) watchHeader(ctx context.Context, m backend.Member, p *backend.Place) error {
	bell := newBell()
	defer s.b.watches.watch(s.dir.fifo(m.Line, m.Position), bell.ring)()
	if p.First {
		defer s.alarm(m, bell)()
	} else {
		defer s.b.watches.watch(s.dir.fifo(m.Line, p.Ahead.Position), bell.ring)()
	}
	return s.follow(ctx, m.Line, bell, func() (changed bool, err error) {
		now, err := s.Ahead(ctx, m)
		if changed = now.Ahead != p.Ahead || now.Header != p.Header; changed && err == nil {
			*p = now
		}
		return changed, err
	})
}

// wakeReader makes awaitEnd of the FIFO return, and rings the bell, when one of the paths may have
// changed, until stop is called. So does wake.
func (s *session) wakeReader(file *os.File, paths ...string) (bell bell, wake, stop func()) {
	bell = newBell()
	wake = func() {
		bell.ring()
		file.SetReadDeadline(time.Unix(1, 0)) // long past: Read returns
	}
	var stops []func()
	for _, path := range paths {
		stops = append(stops, s.b.watches.watch(path, wake))
	}
	return bell, wake, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// awaitEnd blocks until no process has the FIFO open for writing, or wakeReader makes it return.
func awaitEnd(file *os.File) (ended bool, err error) {
	var strangers [64]byte // bytes that a stranger may have written
	switch _, err := file.Read(strangers[:]); {
	case err == io.EOF:
		return true, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return isEnded(file)
	default:
		return false, err
	}
}

// isEnded is awaitEnd without waiting.
func isEnded(file *os.File) (ended bool, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return false, err
	}
	failed := raw.Control(func(fd uintptr) {
		n, err := unix.Read(int(fd), make([]byte, 64))
		ended = n == 0 && err == nil
	})
	return ended, failed
}

// If nobody stands in front of ahead, learnHead notes that. file is ahead's FIFO.
func (s *session) learnHead(m, ahead backend.Member, file *os.File) {
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	head := false
	if err := raw.Control(func(fd uintptr) { head = isHead(int(fd)) }); err != nil || !head {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.places[m.Position]; own != nil {
		own.head = ahead.Position
	}
}
