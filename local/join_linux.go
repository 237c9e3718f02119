package local

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Join adds a member at the end of the line. It writes two files and syncs neither, unless it has to reserve
// numbers; see [backend.Session]. All joins of one line at the same time in one session share these writes.
func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.joinBeside(ctx, backend.Member{Line: line, Value: value}, record)
}

// JoinShared is Join for a shared member; see [backend.Session].
func (s *session) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.joinBeside(ctx, backend.Member{Line: line, Value: value, Shared: true}, record)
}

// joinBeside is join, and tells the record as it is then, if it can.
func (s *session) joinBeside(ctx context.Context, m backend.Member, record string) (backend.Joined, error) {
	j, err := s.join(ctx, m)
	if err == nil && record != "" {
		if r, err := s.Get(ctx, record); err == nil {
			j.Record = &r
		}
	}
	return j, err
}

// A joining is one call of join.
type joining struct {
	m      backend.Member
	place  *backend.Place // of m, if nobody else stands in the line
	err    error
	served chan struct{}      // closed when m has joined, or err is set
	cancel context.CancelFunc // ends the wait for the line's lock
}

// A queue is what joins wait in that are served together.
type queue struct {
	line   string
	pinned bool
}

func (j *joining) queue() queue { return queue{j.m.Line, j.m.Pinned} }

func (j *joining) joined() backend.Joined { return backend.Joined{Member: j.m, Place: j.place} }

// join adds a member like m at the end of its line, and returns it with its key and position.
// The session holds it, unless it is pinned.
//
// The caller that gets the lock first serves all that wait for it and are as it is, pinned or not: the pinned ones
// are in another file.
func (s *session) join(ctx context.Context, m backend.Member) (backend.Joined, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j := &joining{m: m, served: make(chan struct{}), cancel: cancel}
	s.mu.Lock()
	s.joins[j.queue()] = append(s.joins[j.queue()], j)
	s.mu.Unlock()
	err := s.write(ctx, func(ctx context.Context, h *hold) error {
		return s.serve(ctx, h, m.Line, func() []*joining { return s.takeJoins(j.queue()) })
	}, claim{m.Line, write})
	if s.withdraw(j) {
		return backend.Joined{}, err
	}
	<-j.served
	return j.joined(), j.err
}

// withdraw takes j from the waiting joins, and reports whether it was among them.
func (s *session) withdraw(j *joining) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.joins[j.queue()]
	i := slices.Index(waiting, j)
	if i < 0 {
		return false
	}
	if s.joins[j.queue()] = slices.Delete(waiting, i, i+1); len(waiting) == 1 {
		delete(s.joins, j.queue())
	}
	return true
}

// takeJoins takes all joins that wait in the queue.
func (s *session) takeJoins(q queue) []*joining {
	s.mu.Lock()
	defer s.mu.Unlock()
	js := s.joins[q]
	delete(s.joins, q)
	return js
}

// serve adds the joins that take returns to the line. The caller holds the line's lock. If serve
// fails, it has taken none. Once it has taken them, each of them has an error of its own.
func (s *session) serve(ctx context.Context, h *hold, line string, take func() []*joining) error {
	d, im, err := s.dir.readOpen(line)
	defer func() { d.close() }()
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
		err = s.add(&d, im, js, first)
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

// add adds members to a line, with the positions from first on. All are pinned, or none is. Some may fail by
// themselves. d is the folder of the line; add makes it if there is none, or if it has gone.
func (s *session) add(d *dir, im *image, js []*joining, first uint64) error {
	listed := &im.loose
	if js[0].m.Pinned {
		listed = &im.pins
	}
	remake := func() error {
		made, err := s.dir.make(im.name, lockByte(im.name))
		if err == nil {
			d.close()
			*d = made
		}
		return err
	}
	var err error
	if d.top == nil {
		if err = remake(); err != nil {
			return err
		}
	}
	if im.loose.torn {
		// Nobody makes a FIFO beside such a file: who reads it must find that nobody holds one.
		if err := d.remove(lineName); err != nil {
			return err
		}
	}
	// Dead members are taken out only at random joins, because otherwise each Join would take
	// longer in a longer line.
	clean := rand.IntN(im.line.count()+1) <= probesPerJoin*len(js)
	if clean {
		st := &state{name: im.name}
		if st.members, err = listed.whole(); err == nil {
			err = d.drop(st)
		}
		if err != nil {
			return err
		}
		listed.text = st.text(func(backend.Member) bool { return true })
	}
	alone := clean && len(im.loose.text)+len(im.pins.text) == 0
	places := make([]*place, len(js))
	joined := false
	for i, j := range js {
		position := first + uint64(i)
		places[i], j.err = s.dir.stand(*d, im.name, position)
		for tries := 0; errors.Is(j.err, fs.ErrNotExist) && tries < 100; tries++ { // as in folder.make
			if j.err = remake(); j.err == nil {
				places[i], j.err = s.dir.stand(*d, im.name, position)
			}
		}
		if j.err == nil {
			j.m.Key, j.m.Position = key(position), position
			listed.text = appendMember(listed.text, j.m)
			joined = true
		}
	}
	if !joined {
		return nil
	}
	if js[0].m.Pinned {
		err = s.dir.keep(im.name, im.encode(im.pins.text))
	} else {
		err = d.keepNot(im.loose)
	}
	s.mu.Lock()
	for i, j := range js {
		switch p := places[i]; {
		case j.err != nil:
		case err != nil:
			p.letGo()
			_ = p.remove() // whether a file lists it or not, nobody owns it
		case j.m.Pinned:
			p.letGo()
		default:
			s.places[j.m.Position] = p
		}
	}
	s.mu.Unlock()
	if clean && err == nil {
		d.sweep(im)
	}
	if alone && err == nil && js[0].err == nil {
		s.learnAlone(im, js[0])
	}
	return err
}

// learnAlone notes that j's member is first: it has found nobody. Meanwhile this session has the line's lock, as settledPlace has.
// If it cannot lead, Ahead says why.
func (s *session) learnAlone(im *image, j *joining) {
	header, err := im.header()
	if err != nil {
		return
	}
	p, err := kit.PlaceOf(j.m, nil, header)
	if err != nil {
		return
	}
	s.learn(j.m, p)
	j.place = &p
}
