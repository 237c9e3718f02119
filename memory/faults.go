package memory

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
)

// Cut cuts the client off from the coordinator: no request and no answer passes. Messages that are
// sent meanwhile are not lost: they arrive after [Backend.Heal]. The client does not notice. Its
// calls block until Heal, until their context ends, or until the session ends.
func (b *Backend) Cut() { b.cut(true, true) }

// CutRequests lets answers and notifications pass, but no request.
func (b *Backend) CutRequests() { b.cut(true, false) }

// CutAnswers lets requests pass, so that they take effect, but no answer and no
// notification.
func (b *Backend) CutAnswers() { b.cut(false, true) }

// Heal undoes [Backend.Cut], [Backend.CutRequests], [Backend.CutAnswers], [Backend.Sever]
// and [Backend.Hide]. What was held back arrives at once, in the order in which it was sent.
func (b *Backend) Heal() {
	b.c.lock()
	b.severed, b.hidden = 0, false
	b.c.unlock()
	b.cut(false, false)
}

// Sever makes each request that arrives break the connection, until [Backend.Heal]. The first of
// them, the third and so on take effect before that; the others do not. Each time the client
// connects anew after a hundredth of the session time.
func (b *Backend) Sever() {
	b.c.lock()
	defer b.c.unlock()
	b.severed = 1
}

// Hide breaks the connection, and no new one can be made until [Backend.Heal], as if the
// coordinator had another address. The client notices that: Put and Delete fail, and calls that can
// be sent again wait.
func (b *Backend) Hide() {
	b.c.lock()
	defer b.c.unlock()
	b.hidden = true
	b.sever()
}

func (b *Backend) cut(up, down bool) {
	b.c.lock()
	defer b.c.unlock()
	b.up.cut, b.down.cut = up, down
	b.up.wake()
	b.down.wake()
	if b.broken && !up && !down {
		b.reconnect()
	}
}

// Delay sets how long each request, and each answer or notification, takes. It holds for messages
// that are sent from now on. 0 is the default. Messages never overtake each other.
func (b *Backend) Delay(request, answer time.Duration) {
	b.c.lock()
	defer b.c.unlock()
	b.up.delay, b.down.delay = request, answer
}

// Drift sets the speed of the clock by which the coordinator keeps the client's sessions, in
// relation to the client's own clock. Above 1 sessions end earlier, below 1 later, from the
// next heartbeat on. 1 is the default. With a rate above 1 a session may end before its
// deadline: the margin of package elect is for that.
func (b *Backend) Drift(rate float64) {
	b.c.lock()
	defer b.c.unlock()
	b.rate = rate
}

// Expire ends the client's session at the coordinator, as an operator can. A client that can
// be reached learns of it at once. If there is no session, Expire does nothing.
func (b *Backend) Expire() {
	b.c.lock()
	defer b.c.unlock()
	for _, l := range b.c.sorted() {
		if l.of == b {
			b.c.expire(l, fmt.Errorf("%w: an operator ended it", backend.ErrSessionEnded))
		}
	}
}

// LoseAnswer waits for the next call of one of ops; without ops, for the next call except a
// heartbeat. When that call has taken effect, the connection breaks before its answer is sent.
// Other calls that are under way lose their answers, too. The client connects anew at once and
// finds out what it can: only Put and Delete then fail with [backend.ErrUnavailable]. Each
// LoseAnswer loses one answer.
func (b *Backend) LoseAnswer(ops ...Op) {
	b.c.lock()
	defer b.c.unlock()
	b.loseAnswer = append(b.loseAnswer, slices.Clone(ops))
}

// LoseRequest is like [Backend.LoseAnswer], but the connection breaks before the call takes
// effect.
func (b *Backend) LoseRequest(ops ...Op) {
	b.c.lock()
	defer b.c.unlock()
	b.loseRequest = append(b.loseRequest, slices.Clone(ops))
}

// HoldBack lets skip calls of ops pass, and holds the next one back on its way. Without ops it
// counts all calls except heartbeats. The connection breaks as in [Backend.LoseRequest], and held
// reports that. The call takes effect, or not, when release is called, and nobody hears its answer.
// If none was held back, release ends the fault. A second HoldBack replaces one that has held
// nothing back.
func (b *Backend) HoldBack(skip int, ops ...Op) (held func() bool, release func()) {
	b.c.lock()
	defer b.c.unlock()
	h := &hold{skip: skip, ops: slices.Clone(ops)}
	b.hold = h
	return h.held.Load, func() {
		b.c.lock()
		defer b.c.unlock()
		if b.hold == h {
			b.hold = nil
		}
		if cl := h.call; cl != nil {
			h.call = nil
			_, _ = cl.apply()
			b.c.notify()
		}
	}
}

// A hold is one call of HoldBack.
type hold struct {
	skip int
	ops  []Op
	held atomic.Bool
	call *call // that is held back
}

// takes reports whether the call is to be held back, and holds it.
func (h *hold) takes(cl *call) bool {
	if h == nil || h.call != nil || !cl.op.isOf(h.ops) {
		return false
	}
	if h.skip--; h.skip >= 0 {
		return false
	}
	h.call = cl
	h.held.Store(true)
	return true
}

// Kill makes the client vanish without a word to the coordinator, like a process that
// crashes: its members stand until the coordinator ends the session by its own clock. In the
// client the session ends at once, and the client is closed.
func (b *Backend) Kill() {
	b.c.lock()
	defer b.c.unlock()
	b.closed = true
	if b.opening != nil {
		b.abandon(b.opening, backend.ErrClosed)
	}
	if b.session != nil {
		b.session.end(fmt.Errorf("%w: the client was killed", backend.ErrSessionEnded), true)
	}
	b.vanish()
}

// Disconnect breaks the connection. Messages under way are lost. The client connects anew at once,
// and its session goes on.
func (b *Backend) Disconnect() {
	b.c.lock()
	defer b.c.unlock()
	b.sever()
}

// losses are the calls to lose. Each element has the ops of which the next is to be lost.
type losses [][]Op

// take reports whether a call of op is to be lost. If so, it removes that loss.
func (l *losses) take(op Op) bool {
	i := slices.IndexFunc(*l, op.isOf)
	if i < 0 {
		return false
	}
	*l = slices.Delete(*l, i, i+1)
	return true
}

// isOf reports whether op is one of ops, or any but a heartbeat if there are no ops.
func (op Op) isOf(ops []Op) bool {
	return slices.Contains(ops, op) || len(ops) == 0 && op != OpHeartbeat
}

// Restart stops and starts the server. Connections break, sessions have their whole time
// again, and data is kept. A paused coordinator stays paused.
func (c *Coordinator) Restart() {
	c.lock()
	defer c.unlock()
	for _, l := range c.sorted() {
		c.renew(l)
	}
	c.severAll()
}

// Pause stops the coordinator: nothing passes in either direction, and the clocks by which it
// keeps sessions stand still. The clients' own clocks go on, so their sessions end by their
// deadlines. What an operator does, such as Remove, still takes effect.
func (c *Coordinator) Pause() {
	c.lock()
	defer c.unlock()
	if c.paused {
		return
	}
	c.paused = true
	for _, l := range c.leases {
		l.left = time.Until(l.expires)
		l.timer.Stop()
	}
}

// Resume undoes [Coordinator.Pause]. Messages that were sent meanwhile arrive at once.
func (c *Coordinator) Resume() {
	c.lock()
	defer c.unlock()
	if !c.paused {
		return
	}
	c.paused = false
	for _, l := range c.sorted() {
		l.expires = time.Now().Add(l.left)
		l.timer.Reset(l.left)
	}
	for _, b := range c.clients {
		b.up.wake()
		b.down.wake()
	}
}

// Remove deletes the member with the key, as an operator can, also if it is pinned. It
// reports whether there was one.
func (c *Coordinator) Remove(line, key string) bool {
	c.lock()
	defer c.unlock()
	for _, m := range c.store.members(line) {
		if m.Key == key {
			c.drop(m)
			c.notify()
			return true
		}
	}
	return false
}

// Drop deletes the election, as an operator can: its members and its header. The numbers in
// its keys begin anew. The log goes on, so positions go on growing.
func (c *Coordinator) Drop(line string) {
	c.lock()
	defer c.unlock()
	for _, m := range c.store.members(line) {
		c.drop(m)
	}
	delete(c.store.lines, line)
	_ = c.store.del(line, nil) // fails on conditions alone
	c.notify()
}

// Reset empties the coordinator: lines, records and sessions are gone, and the log begins
// anew. If a client has seen a higher index than the log has when the client comes back, it
// fails with [backend.ErrReset] from then on.
func (c *Coordinator) Reset() {
	c.lock()
	defer c.unlock()
	for _, l := range c.leases {
		l.timer.Stop()
	}
	clear(c.leases)
	c.store, c.past = newStore(c.start), nil
	c.severAll()
}

// Snapshot remembers lines, records, sessions and the index of the log. restore puts them
// back, like an operator who restores a backup: what happened since is lost, and connections
// break. The sessions that were live then are live again, and have their whole time. A
// client that has seen a higher index fails with [backend.ErrReset] once it is told a lower
// one. restore may be called more than once.
func (c *Coordinator) Snapshot() (restore func()) {
	c.lock()
	defer c.unlock()
	kept, leases := c.store.clone(), c.sorted()
	for i, l := range leases {
		leases[i] = l.clone()
	}
	return func() {
		c.lock()
		defer c.unlock()
		for _, l := range c.leases {
			l.timer.Stop()
		}
		clear(c.leases)
		c.store, c.past = kept.clone(), nil
		for _, l := range leases {
			l := l.clone()
			l.timer = time.AfterFunc(c.ttl+c.slack, func() { c.sweep(l) })
			c.leases[l.id] = l
			c.renew(l)
		}
		c.severAll()
	}
}

func (c *Coordinator) severAll() {
	for _, b := range c.clients {
		b.sever()
	}
}
