package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A join adds one member. The session runs it, not the caller ([kit.Joins]): once its create has been
// sent, it runs until it is known whether there is a member. If the caller has gone by
// then, it removes the member.
//
// If a create was not answered, its member is found by the znode's owner, which is this
// session, and by its value. A mark in the name is not possible, because LeaderElectionSupport
// accepts none. While a join looks for its member, no other join of the session is under way in the
// line. So each unknown member is one whose create was not answered. If several of these have the
// same value, it does not matter which join gets which.
type join struct {
	s      *session
	others *sync.RWMutex // of [lineJoins]
	alone  bool          // it holds others for writing
	name   string        // of the line
	line   string        // the line's znode
	prefix string        // of the member's name
	value  string
	record string // the record to return, with the place; "" for neither
	item   string // the znode of the item that the member claims; "" for none
	// position is that of the item.
	position uint64

	seen *reading        // of the line since the member was created; nil if it is not known
	told *backend.Record // what is known of the record since then
}

// Join adds a member at the end of the line; see [backend.Session]. It takes two round trips: one to create the member, and one for all that is
// read then, which goes out together: the member's znode and, if a record is given, the places of
// the line, the header unless that is known, and whether there is such a record.
func (s *session) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return s.join(ctx, &join{name: line, prefix: s.options.namePrefix(), value: value, record: record})
}

// Shares fails if others would not see shared members; see [kit.NoShares].
func (s *session) Shares() error {
	_, err := s.options.sharedPrefix()
	return err
}

// JoinShared is Join for a shared member; see [backend.Session]. It fails with [errors.ErrUnsupported] if the
// candidates that [Options] As names do not see shared members.
func (s *session) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	prefix, err := s.options.sharedPrefix()
	if err != nil {
		return backend.Joined{}, err
	}
	return s.join(ctx, &join{name: line, prefix: prefix, value: value, record: record})
}

func (s *session) join(ctx context.Context, j *join) (backend.Joined, error) {
	j.s, j.line = s, s.options.path(j.name)
	o, err := s.joining.Do(ctx, func() (*member, func(), error) {
		others, done := s.joinsOf(j.name)
		defer done()
		j.others = others
		o, err := j.run(ctx)
		if err == nil && j.item != "" {
			if err := j.holds(s.link.Context(), o); err != nil {
				return nil, func() { s.joining.Discard(o) }, err
			}
		}
		return o, nil, err
	})
	if err != nil {
		return backend.Joined{}, err
	}
	joined := backend.Joined{Member: o.joined, Record: j.told}
	if j.seen != nil {
		if p, err := s.placed(ctx, o, *j.seen, nil); err == nil { // otherwise Ahead says what is wrong
			joined.Place = &p
		}
	}
	return joined, nil
}

// undo removes a member that no caller knows of. It tries until the link is dead: then the member goes with
// the session.
func (s *session) undo(o *member) error {
	return kit.About(o.joined, s.leaving.Do(s.link.Context(), o.joined))
}

// lineJoins is what the joins in one line have in common: each has the lock to read, and to write
// while it looks for a member whose create was not answered.
type lineJoins struct {
	sync.RWMutex
	users int // the session's mu guards it
}

// joinsOf returns the lock of the joins in the line. The caller calls done when it no longer needs
// it.
func (s *session) joinsOf(line string) (lock *sync.RWMutex, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.joins[line]
	if l == nil {
		l = new(lineJoins)
		s.joins[line] = l
	}
	l.users++
	return &l.RWMutex, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(s.joins, line)
		}
	}
}

// job is spawn for joins and pins, which Close waits for before it removes members. It
// reports false, and does not run f, once Close has begun.
func (s *session) job(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down || s.Ended() != nil {
		return false
	}
	s.jobs.Add(1)
	s.wg.Go(func() {
		defer s.jobs.Done()
		f()
	})
	return true
}

func (j *join) run(ctx context.Context) (*member, error) {
	j.others.RLock()
	o, err := j.add(ctx)
	if o != nil {
		o.joined.Line, o.joined.Value, o.joined.Shared = j.name, j.value, isShared(o.key())
		j.s.enlist(o)
	}
	if j.alone {
		j.others.Unlock()
	} else {
		j.others.RUnlock()
	}
	return o, err
}

// add creates the member. ctx is the caller's. Once a create has been sent, add waits for
// its outcome even if ctx ends.
func (j *join) add(ctx context.Context) (*member, error) {
	inner := j.s.link.Context()
	wait := pauses()
	for {
		c, err := start(ctx, j.s, j.create())
		if err != nil {
			return nil, err
		}
		at, err := c.wait(inner)
		if errors.Is(err, errLost) {
			at, err = j.find(inner)
		}
		switch {
		case err == nil && at != "":
			return j.verify(inner, at)
		case err == nil: // the create never happened
			err = wait.Sleep(ctx)
		case err == zk.ErrNoNode:
			if err = j.demands(ctx); err == nil {
				err = j.s.ensure(ctx, j.line)
			}
		case err == zk.ErrNodeExists:
			err = errNumbers
		}
		if err != nil {
			return nil, err
		}
	}
}

// create returns the request that creates the member.
func (j *join) create() func(*zk.Conn) (string, error) {
	path := j.line + "/" + j.prefix
	if j.item == "" {
		return j.s.create(path, []byte(j.value), zk.FlagEphemeralSequential)
	}
	ops := multi(check(j.item), &zk.CreateRequest{Path: path, Data: []byte(j.value), Acl: j.s.options.acl(), Flags: zk.FlagEphemeralSequential})
	return func(c *zk.Conn) (string, error) {
		results, err := ops(c)
		if err != nil {
			return "", err
		}
		return results[1].String, nil
	}
}

// demands fails if the item that the member is to claim does not stand.
func (j *join) demands(ctx context.Context) error {
	if j.item == "" {
		return nil
	}
	_, err := retry(ctx, j.s, stat(j.item))
	if err == zk.ErrNoNode {
		err = fmt.Errorf("%w: %s has gone", backend.ErrTaken, j.item)
	}
	return err
}

// errNumbers says that no number is free. From 3.6 on the counter stays at its largest number
// (DataTree.java, createNode).
var errNumbers = fmt.Errorf("%w: the next number is taken already, as it is after 2147483647 joins; %s", backend.ErrLine, lineRemedy)

// find looks for a member whose create was not answered. It returns "" if there is none. If there
// is one, no other join goes on before that is known.
func (j *join) find(ctx context.Context) (string, error) {
	s := j.s
	if !j.alone {
		j.others.RUnlock()
		j.others.Lock()
		j.alone = true
	}
	at, err := kit.Retry(ctx, pauses(), isLost, j.findOwn)
	if err != nil && s.link.Ended() == nil {
		// The members of a session that has ended go with it.
		s.link.Kill(fmt.Errorf("a join's outcome cannot be found out: %w", err))
		return "", s.link.Ended()
	}
	if at == "" {
		j.others.Unlock()
		j.others.RLock()
		j.alone = false
	}
	return at, err
}

func (j *join) findOwn(ctx context.Context) (string, error) {
	s := j.s
	// The create may have been proposed, and not yet applied on the server to which the
	// session is connected now. That server applies a later write of the session only
	// after it. If the former server had not forwarded the create yet, the ensemble now
	// refuses it (SessionMoved).
	if _, err := do(ctx, s, barrier(j.line)); err != nil {
		return "", err
	}
	all, err := do(ctx, s, children(j.line))
	if err == zk.ErrNoNode {
		return "", nil // a znode with children cannot have been deleted
	}
	if err != nil {
		return "", err
	}
	// All of them are read, not the last alone: a foreign candidate may have chosen its
	// number, so a number does not tell how old a member is.
	var paths []string
	for _, name := range all.names {
		if at := j.line + "/" + name; strings.HasPrefix(name, j.prefix) && !s.knows(at, all.stat.Czxid) {
			paths = append(paths, at)
		}
	}
	nodes, err := s.getAll(ctx, paths)
	if err != nil {
		return "", err
	}
	session, _ := s.link.State()
	for i, n := range nodes {
		if n.stat != nil && n.stat.EphemeralOwner == session && string(n.data) == j.value {
			return paths[i], nil
		}
	}
	return "", nil
}

// verify reads the znode of a member that was created, and checks that it is this session's. At the same time it
// reads what the join is to tell.
func (j *join) verify(ctx context.Context, at string) (*member, error) {
	s := j.s
	var own sight
	var err error
	var looks sync.WaitGroup
	looks.Go(func() {
		if j.record == "" {
			own.stat, err = retry(ctx, s, stat(at))
			return
		}
		// This also sets the watch that a waiter and a leader need.
		if own, _, err = s.look(ctx, dataOf(at)); own.missing {
			err = zk.ErrNoNode
		}
	})
	if j.record != "" {
		looks.Go(func() { j.told = j.absent(ctx) })
	}
	up, perr := j.made(ctx)
	looks.Wait()
	switch err := cmp.Or(err, perr); {
	case err == zk.ErrNoNode:
		return nil, fmt.Errorf("%w: %s was removed as soon as it was created", backend.ErrNotMember, at)
	case err != nil:
		// It cannot be read, so nobody could lead with it.
		s.link.Kill(fmt.Errorf("cannot read %s: %w", at, err))
		return nil, err
	}
	session, _ := s.link.State()
	if own.stat.EphemeralOwner != session || up > own.stat.Czxid {
		return nil, fmt.Errorf("%w: %s was removed and is another's now", backend.ErrNotMember, at)
	}
	return &member{
		path:   at,
		joined: backend.Member{Key: path.Base(at), Position: uint64(own.stat.Czxid)},
		parent: up,
		index:  -1,
		gone:   make(chan struct{}),
	}, nil
}

// made returns the czxid of the line's znode. If the join is to tell the place, it reads the whole
// line for that.
func (j *join) made(ctx context.Context) (int64, error) {
	if j.record != "" {
		r, err := kit.Retry(ctx, pauses(), passing, func(ctx context.Context) (reading, error) { return j.s.reading(ctx, j.name, func() {}) })
		if err == nil {
			j.seen = &r
			return r.made, nil
		}
	}
	up, err := retry(ctx, j.s, stat(j.line)) // this needs no right to read
	if err != nil {
		return 0, err
	}
	return up.Czxid, nil
}

// absent returns the record as absent, if there is none. It sets no watch on it, because watches would
// stay for each name that was ever used. But if a watch shows that the header is as it was when there was no
// record, absent does not ask again; see [backend.Joined].
func (j *join) absent(ctx context.Context) *backend.Record {
	s, header := j.s, dataOf(j.line)
	none := &backend.Record{Name: j.record, Version: backend.Absent}
	v, known := s.watches.known(header)
	if known && v.lacks == j.record {
		return none
	}
	if _, err := retry(ctx, s, stat(s.options.path(j.record))); err != zk.ErrNoNode {
		return nil
	}
	if known {
		s.watches.without(header, v.fired, j.record)
	}
	return none
}

// ensure creates a persistent znode, and those above it that are missing.
func (s *session) ensure(ctx context.Context, path string) error {
	missing := []string{path} // the deepest first
	wait := pauses()
	for len(missing) > 0 {
		at := missing[len(missing)-1]
		_, err := do(ctx, s, s.create(at, nil, zk.FlagPersistent))
		switch {
		case err == nil:
			s.madeAt(at)
			missing = missing[:len(missing)-1]
		case err == zk.ErrNodeExists:
			missing = missing[:len(missing)-1]
		case err == zk.ErrNoNode:
			missing = append(missing, parent(at))
		case !errors.Is(err, errLost):
			return err
		default:
			if err := wait.Sleep(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
