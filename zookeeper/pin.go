package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
)

// ZooKeeper cannot change an ephemeral znode into a persistent one. So the znode is deleted
// and created anew under its name, in one transaction. The member thus keeps its place,
// but its znode has a new czxid: the member's position is appended to the data.

const pinMark = "\x00pinned at "

// pinnedData returns the data of a pinned member.
func pinnedData(value []byte, position uint64) []byte {
	return strconv.AppendUint(append(slices.Clone(value), pinMark...), position, 10)
}

// pinned reports whether the member with the znode n is pinned.
func (n node) pinned() bool { return n.stat.EphemeralOwner == 0 }

// split returns the value and the position of the member with the znode n. An item has its
// position by itself; see itemData.
func (n node) split() (value string, position uint64) {
	value, position = string(n.data), uint64(n.stat.Czxid)
	i := strings.LastIndex(value, pinMark)
	if !n.pinned() || i < 0 {
		return value, position
	}
	at := value[i+len(pinMark):]
	if at == "" {
		return value[:i], position
	}
	if p, err := strconv.ParseUint(at, 10, 63); err == nil && p < position {
		return value[:i], p
	}
	return value, position
}

func (n node) position() uint64 {
	_, position := n.split()
	return position
}

// rewritten reports whether n is persistent, and somebody has written it since it was made, which is never done with a member. If it is
// a pinned one, it may not say its position any more.
func (n node) rewritten() bool { return n.pinned() && n.stat.Version > 0 }

// inLine reports whether n, the child called key, is a member. Otherwise it is a record. Put
// creates a znode and then writes it; that of a member is never written.
func (n node) inLine(key string) bool {
	_, numbered, err := sequence(key)
	return (numbered || err != nil) && !n.rewritten()
}

// member returns the member with the znode n.
func (n node) member(line, key string) backend.Member {
	value, position := n.split()
	return backend.Member{Line: line, Key: key, Position: position, Value: value, Shared: isShared(key), Pinned: n.pinned()}
}

// Pin implements [backend.Session]. Once its transaction has been sent, the session finds
// out what became of it, even if ctx ends first.
func (s *session) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	path, err := s.options.member(m)
	if err != nil {
		return err
	}
	o := s.owner(path, m)
	if o == nil {
		o = &member{path: path, joined: m, gone: make(chan struct{})}
	}
	done := make(chan struct{})
	for {
		if err := s.unpinning(ctx, o); err != nil {
			return err
		}
		s.mu.Lock()
		free := o.pinning == nil
		if free {
			o.pinning = done
		}
		s.mu.Unlock()
		if free {
			break
		}
	}
	end := func() {
		s.mu.Lock()
		o.pinning = nil
		s.mu.Unlock()
		close(done)
	}
	var failed error
	if !s.job(func() {
		defer end()
		failed = s.makePinned(ctx, o, h, at)
	}) {
		end()
		return s.Ended()
	}
	select {
	case <-done:
		return failed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unpinning waits until no Pin of o is under way.
func (s *session) unpinning(ctx context.Context, o *member) error {
	s.mu.Lock()
	done := o.pinning
	s.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *session) makePinned(ctx context.Context, o *member, h backend.Header, at backend.Version) error {
	line, data := s.options.path(o.joined.Line), h.Encode()
	inner := s.link.Context()
	sent := false
	wait := pauses()
	for {
		now, err := sure(ctx, s, func(ctx context.Context) (pinnable, error) { return s.pinnable(ctx, o, data, at, sent) })
		if err != nil {
			return err
		}
		self, record := now.self, now.record
		if now.done {
			return nil
		}
		// The header comes last, and so does its notice: a client that has it knows of the pin too.
		var ops []any
		if !self.pinned() {
			ops = append(ops,
				&zk.DeleteRequest{Path: o.path, Version: -1},
				&zk.CreateRequest{Path: o.path, Data: pinnedData(self.data, o.joined.Position), Acl: s.options.acl(), Flags: zk.FlagPersistent})
		}
		ops = append(ops, &zk.SetDataRequest{Path: line, Data: data, Version: record.stat.Version})
		c, err := start(ctx, s, multi(ops...))
		if err != nil {
			return err
		}
		_, err = c.wait(inner)
		ctx = inner // from here on the outcome must be found out
		switch {
		case err == nil:
			s.setPinned(o)
			return nil
		case err == zk.ErrBadVersion:
			return backend.ErrVersion
		case err == zk.ErrNoNode:
		case errors.Is(err, errLost):
			// As in findOwn: the transaction may not have been applied yet on the server
			// that is asked next.
			sent = !self.pinned()
			if _, err := retry(ctx, s, barrier(line)); err != nil {
				return err
			}
		default:
			return err
		}
		if err := wait.Sleep(ctx); err != nil {
			return err
		}
	}
}

// A pinnable is what a pin is based on: the znodes of the member and of the line. done says that there is nothing to do.
type pinnable struct {
	self, record node
	done         bool
}

// pinnable reads them, and fails if o cannot be pinned at that version of the record, on this server. sent says that a pin was sent
// whose answer was lost.
func (s *session) pinnable(ctx context.Context, o *member, data []byte, at backend.Version, sent bool) (p pinnable, err error) {
	p.self, err = retry(ctx, s, get(o.path))
	if err == zk.ErrNoNode {
		s.forget(o)
	}
	if err == zk.ErrNoNode || err == nil && p.self.position() != o.joined.Position {
		return p, fmt.Errorf("%w: %s has gone", backend.ErrNotMember, o.path)
	}
	if err == nil {
		err = s.mayTouch(p.self, o.joined)
	}
	if err != nil {
		return p, err
	}
	if p.record, err = retry(ctx, s, get(s.options.path(o.joined.Line))); err != nil {
		return p, err
	}
	if p.self.pinned() {
		s.setPinned(o)
	}
	p.done = p.self.pinned() && (sent || bytes.Equal(p.record.data, data))
	if !p.done && version(p.record) != at {
		err = backend.ErrVersion
	}
	return p, err
}

func (s *session) setPinned(o *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.pinned = true
}
