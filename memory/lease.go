package memory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A lease is the coordinator's side of a session. It ends by the coordinator's own timer,
// whatever the client believes.
type lease struct {
	id      uint64
	of      *Backend
	expires time.Time
	left    time.Duration // until expires, while the coordinator is paused
	timer   *time.Timer
	members []backend.Member // joined under it, not pinned, in order

	// answers are the answers to calls that must take effect only once, by the call's
	// number. They are kept until the client has said that it has them. If a call comes
	// again because its answer was lost, it is answered from here.
	answers map[uint64]answer
	settled uint64 // the client has the answers to all calls before this one
}

type answer struct {
	value any
	err   error
}

// clone returns a copy that has no timer.
func (l *lease) clone() *lease {
	return &lease{id: l.id, of: l.of, members: slices.Clone(l.members), answers: maps.Clone(l.answers), settled: l.settled}
}

// once runs f if call n has not run before, and returns the answer of the first time
// otherwise. The client has the answers to all calls before oldest. If a copy of such a call comes
// late, over a connection that the client has given up, nobody waits for its answer, and it does
// nothing.
func (l *lease) once(n, oldest uint64, f func(*lease) (any, error)) (any, error) {
	l.settled = max(l.settled, oldest)
	maps.DeleteFunc(l.answers, func(k uint64, _ answer) bool { return k < l.settled })
	if n < l.settled {
		return nil, errLate
	}
	if a, known := l.answers[n]; known {
		return a.value, a.err
	}
	v, err := f(l)
	l.answers[n] = answer{v, err}
	return v, err
}

// errLate is the answer to a copy of a call to which the client has the answer.
var errLate = errors.New("the call was answered before")

// grant begins the session, or renews it if the request to open it has come again.
func (c *Coordinator) grant(b *Backend, id uint64) {
	l := c.leases[id]
	if l == nil {
		l = &lease{id: id, of: b, answers: make(map[uint64]answer)}
		l.timer = time.AfterFunc(c.ttl+c.slack, func() { c.sweep(l) })
		c.leases[id] = l
	}
	c.renew(l)
}

// renew counts the session's time from now.
func (c *Coordinator) renew(l *lease) {
	l.left = time.Duration(float64(c.ttl+c.slack) / l.of.rate)
	l.expires = time.Now().Add(l.left)
	if !c.paused {
		l.timer.Reset(l.left)
	}
}

// sweep ends the session if its time is over. It runs in the lease's timer.
func (c *Coordinator) sweep(l *lease) {
	c.lock()
	defer c.unlock()
	if c.leases[l.id] != l || c.paused {
		return
	}
	if d := time.Until(l.expires); d > 0 {
		l.timer.Reset(d)
		return
	}
	c.expire(l, fmt.Errorf("%w: the coordinator has not heard from the client for %v", backend.ErrSessionEnded, c.ttl+c.slack))
}

// expire ends the session and tells the client.
func (c *Coordinator) expire(l *lease, why error) {
	c.release(l)
	index := c.store.index
	l.of.push(func() { l.of.told(l.id, why, index) })
}

// release ends the session. Its members go, in the order in which they joined.
func (c *Coordinator) release(l *lease) {
	l.timer.Stop()
	delete(c.leases, l.id)
	c.unpark(func(r *request) bool { return r.call.under != nil && r.call.under.id == l.id })
	for _, m := range l.members {
		c.store.remove(m)
	}
	c.notify()
}

// disown takes m from the session, because m has left or is pinned.
func (l *lease) disown(m backend.Member) {
	l.members = slices.DeleteFunc(l.members, func(o backend.Member) bool { return o.Position == m.Position })
}

// leave removes m if the session joined it or it is pinned.
func (c *Coordinator) leave(m backend.Member, l *lease) error {
	ln, i, ok := c.store.find(m)
	if !ok {
		return nil
	}
	if owner := ln.members[i].owner; owner != 0 && owner != l.id {
		return fmt.Errorf("%w: member %s was joined by another session", backend.ErrDenied, m.Key)
	}
	c.drop(m)
	return nil
}

// drop removes m of any session.
func (c *Coordinator) drop(m backend.Member) {
	if l := c.leases[c.store.remove(m)]; l != nil {
		l.disown(m)
	}
}

// sorted returns the sessions, the oldest first, so that what happens to several of them
// happens in a fixed order.
func (c *Coordinator) sorted() []*lease {
	return slices.SortedFunc(maps.Values(c.leases), func(a, b *lease) int { return cmp.Compare(a.id, b.id) })
}
