package local

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Gone blocks until m has gone; see [backend.Session]. It also returns if m is pinned and
// the caller cannot know that, because m does not say so and this session did not pin it.
// It takes one descriptor and no goroutine.
func (s *session) Gone(ctx context.Context, m backend.Member) error {
	path := s.dir.fifo(m.Line, m.Position)
	file, err := s.dir.openFIFO(m)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()

	bell, wake, stop := s.wakeReader(file, path)
	defer stop()
	defer context.AfterFunc(ctx, wake)()

	known := m.Pinned || s.hasPinned(m)
	let := false // whether the process that joined m has let go: then only a pin keeps m in line
	for {
		// The checks below see what a wake before this line was about. A later wake ends
		// Read.
		if err := file.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if err := s.Usable(ctx); err != nil {
			return err
		}
		if _, err := os.Lstat(path); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return err
		}
		pinned, err := s.dir.pinned(m)
		if err != nil || pinned && !known || let && !pinned {
			return err // if pinned, m may be a seal: the waiters should know
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

// WatchLine blocks until other members stand in the line than in after; see [backend.Session].
// While it blocks it takes a goroutine and a descriptor for each member that is not pinned,
// because @state does not tell that such a member has gone.
func (s *session) WatchLine(ctx context.Context, line string, after backend.Line) (l backend.Line, err error) {
	bell := newBell()
	ctx, cancel := context.WithCancelCause(ctx)
	var waits sync.WaitGroup
	defer waits.Wait()
	defer cancel(nil)
	for _, m := range after.Members {
		m.Line = line
		if m.Pinned {
			defer s.b.watches.watch(s.dir.fifo(line, m.Position), bell.ring)()
			continue
		}
		m.Pinned = true // so that Gone does not return if m is pinned meanwhile
		waits.Go(func() {
			if err := s.Gone(ctx, m); err != nil {
				cancel(err)
			}
			bell.ring()
		})
	}
	err = s.follow(ctx, line, bell, func() (changed bool, err error) {
		l, err = s.Line(ctx, line)
		return !kit.SameMembers(l, after), err
	})
	return l, err
}
