package local

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// Join adds a member at the end of the line. It writes two files to the disk; see
// [backend.Session]. All joins of one line at the same time in one session share these writes.
func (s *session) Join(ctx context.Context, line, value, _ string) (backend.Joined, error) {
	m, err := s.join(ctx, backend.Member{Line: line, Value: value})
	return backend.Joined{Member: m}, err
}

// JoinShared is Join for a shared member; see [backend.Sharer].
func (s *session) JoinShared(ctx context.Context, line, value, _ string) (backend.Joined, error) {
	m, err := s.join(ctx, backend.Member{Line: line, Value: value, Shared: true})
	return backend.Joined{Member: m}, err
}

// A joining is one call of join.
type joining struct {
	m      backend.Member
	err    error
	served chan struct{}      // closed when m has joined, or err is set
	cancel context.CancelFunc // ends the wait for the line's lock
}

// join adds a member like m at the end of its line, and returns it with its key and position.
// The session holds it, unless it is pinned.
//
// The caller that gets the lock first serves all that wait for it.
func (s *session) join(ctx context.Context, m backend.Member) (backend.Member, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j := &joining{m: m, served: make(chan struct{}), cancel: cancel}
	s.mu.Lock()
	s.joins[m.Line] = append(s.joins[m.Line], j)
	s.mu.Unlock()
	err := s.write(ctx, func(ctx context.Context, h *hold) error {
		return s.serve(ctx, h, m.Line, func() []*joining { return s.takeJoins(m.Line) })
	}, claim{m.Line, write})
	if s.withdraw(j) {
		return m, err
	}
	<-j.served
	return j.m, j.err
}

// withdraw takes j from the waiting joins, and reports whether it was among them.
func (s *session) withdraw(j *joining) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.joins[j.m.Line]
	i := slices.Index(waiting, j)
	if i < 0 {
		return false
	}
	if s.joins[j.m.Line] = slices.Delete(waiting, i, i+1); len(waiting) == 1 {
		delete(s.joins, j.m.Line)
	}
	return true
}

// takeJoins takes all joins that wait for the line.
func (s *session) takeJoins(line string) []*joining {
	s.mu.Lock()
	defer s.mu.Unlock()
	js := s.joins[line]
	delete(s.joins, line)
	return js
}

// serve adds the joins that take returns to the line. The caller holds the line's lock. If serve
// fails, it has taken none. Once it has taken them, each of them has an error of its own.
func (s *session) serve(ctx context.Context, h *hold, line string, take func() []*joining) error {
	im, err := s.dir.read(line)
	if err != nil {
		return err
	}
	newest, err := im.newest()
	if err != nil {
		return err
	}
	c, unlock, err := s.dir.lockCounter(ctx, h)
	if err != nil {
		return err
	}
	js := take()
	if len(js) == 0 { // another call has served this one
		unlock()
		return nil
	}
	first, err := s.dir.draw(c, newest, len(js))
	unlock()
	if err == nil {
		err = s.add(im, js, first)
	}
	for _, j := range js {
		j.err = cmp.Or(j.err, err)
		close(j.served)
		j.cancel()
	}
	return nil
}

// probesPerJoin is how many members a Join looks at on average, to find members that have gone. In
// a shorter line it looks at all.
const probesPerJoin = 16

// add adds members to a line, with the positions from first on. Some may fail by themselves.
func (s *session) add(im *image, js []*joining, first uint64) error {
	// Dead members are taken out only at random joins, because otherwise each Join would take
	// longer in a longer line.
	clean := rand.IntN(im.listed()+1) <= probesPerJoin*len(js)
	if clean {
		st, err := im.whole()
		if err == nil {
			err = s.dir.drop(st)
		}
		if err != nil {
			return err
		}
		im.line = st.lines()
	}
	places := make([]*place, len(js))
	joined := false
	for i, j := range js {
		position := first + uint64(i)
		if places[i], j.err = s.dir.stand(im.name, position); j.err == nil {
			j.m.Key, j.m.Position = key(position), position
			im.line = appendMember(im.line, j.m)
			joined = true
		}
	}
	if !joined {
		return nil
	}
	err := s.dir.replaceState(im.name, im.encode())
	s.mu.Lock()
	for i, j := range js {
		switch p := places[i]; {
		case j.err != nil:
		case err != nil:
			p.letGo()
			p.remove() // whether @state lists it or not, nobody owns it
		case j.m.Pinned:
			p.letGo()
		default:
			s.places[j.m.Position] = p
		}
	}
	s.mu.Unlock()
	if clean && err == nil {
		s.dir.sweep(im)
	}
	return err
}
