package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A session holds the members that a backend has joined. It lives until it is closed, the process
// dies, or others can no longer find its folder.
type session struct {
	kit.AlwaysFresh // every read is of the files themselves
	*kit.Life
	kit.NoImports
	kit.NoDates
	b   *Backend
	dir *folder

	// writing is held shared during each write, and exclusively while the session is
	// released: nothing is written after that. Only clean does not hold it: Close would wait for it.
	writing sync.RWMutex

	mu     sync.Mutex
	places map[uint64]*place       // by position
	joins  map[queue][]*joining    // the joins that wait for their turn
	first  map[bell]backend.Member // the members that are watched as first in line; see patrol
}

var _ backend.Session = (*session)(nil)

func newSession(b *Backend, f *folder) *session {
	s := &session{b: b, dir: f, places: make(map[uint64]*place), joins: make(map[queue][]*joining), first: make(map[bell]backend.Member)}
	s.Life = b.sessions.NewLife(kit.Rules{
		Over:    f.moved,
		Explain: s.explain,
		Release: s.release,
		Stands:  func() string { return "its writes are done" },
	})
	s.Start(s.patrol)
	return s
}

// Close ends the session. When it returns, the members that are not pinned have gone. It
// waits for writes in progress, which take milliseconds. Closing twice is not an error.
func (s *session) Close(context.Context) error { return s.Life.Close(context.Background()) }

// explain returns err, with which a call has failed, as an error of the contract. If the folder has
// gone meanwhile, or was closed because the session has ended, that is the error.
func (s *session) explain(_ context.Context, err error) error {
	if errors.Is(err, os.ErrClosed) || errors.Is(err, fs.ErrNotExist) {
		if ended := s.Alive(); ended != nil {
			return ended
		}
	}
	return classify(err)
}

// release removes all members that are not pinned.
func (s *session) release(context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	var stays error
	s.mu.Lock()
	for _, p := range s.places {
		p.letGo()
		if !p.pinned {
			if err := p.remove(); p.lent {
				stays = errors.Join(stays, err)
			}
		}
		p.finish()
	}
	clear(s.places)
	s.mu.Unlock()
	return errors.Join(stays, s.dir.close()) // it waits for one who looks, who may be about to lock s.mu
}

// write runs fn with the names locked, unless the session has ended. fn goes on if ctx ends
// meanwhile: it is short, and half of it would be worse.
func (s *session) write(ctx context.Context, fn func(ctx context.Context, h *hold) error, claims ...claim) error {
	ctx, cancel := s.bounded(ctx, claims[0].name)
	defer cancel()
	h, err := s.dir.acquire(ctx, claims...)
	if err != nil {
		return err
	}
	s.writing.RLock()
	if err = s.Alive(); err == nil { // the folder may have moved while this waited
		err = fn(ctx, h)
	}
	h.release()
	s.writing.RUnlock()
	s.dir.clean() // if the session is closed meanwhile, it ends
	return err
}

// Files returns the file that holds m: the FIFO of its place, open once more; see [backend.Session].
func (s *session) Files(m backend.Member) ([]*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[m.Position]
	if p == nil || p.line != m.Line {
		return nil, wrap("files", m.Line, backend.ErrNotMember)
	}
	file, err := p.hold()
	if err != nil {
		return nil, wrap("files", m.Line, err)
	}
	p.lent = true
	return []*os.File{file}, nil
}
