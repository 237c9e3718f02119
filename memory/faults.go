package memory

import (
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// Cut cuts the client off from the coordinator: no request and no answer passes.
// What is sent meanwhile is not lost, it arrives after [Backend.Heal]. The client
// is not told, and its calls block until then, until their context ends, or until
// the session does.
func (b *Backend) Cut() { b.cut(true, true) }

// CutRequests lets answers and notifications pass, but no request.
func (b *Backend) CutRequests() { b.cut(true, false) }

// CutAnswers lets requests pass, which take effect, but neither answers nor
// notifications.
func (b *Backend) CutAnswers() { b.cut(false, true) }

// Heal undoes [Backend.Cut] and its variants, [Backend.Sever] and [Backend.Hide]. What
// was held back arrives at once, in the order in which it was sent.
func (b *Backend) Heal() {
	b.c.lock()
	b.severed, b.hidden = 0, false
	b.c.unlock()
	b.cut(false, false)
}

// Sever has the connection break with each request that arrives, until
// [Backend.Heal]: every other one takes effect, the first included. The client
// connects anew after a hundredth of the session's time, again and again.
func (b *Backend) Sever() {
	b.c.lock()
	defer b.c.unlock()
	b.severed = 1
}

// Hide breaks the connection, and none can be made until [Backend.Heal], as when the
// coordinator's address does not lead there any more. The client knows that: Put and
// Delete fail, and what can be sent again waits.
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

// Delay makes every request, and every answer or notification, that is sent from
// now on take so long. 0 is the default. Messages never overtake each other.
func (b *Backend) Delay(request, answer time.Duration) {
	b.c.lock()
	defer b.c.unlock()
	b.up.delay, b.down.delay = request, answer
}

// Drift has the clock by which the coordinator keeps the client's sessions run at rate
// times the speed of the client's own: above 1 they end earlier, below 1 later, from the
// next heartbeat on. 1 is the default. A session may then end before its deadline, which
// is what the margin of package elect is for.
func (b *Backend) Drift(rate float64) {
	b.c.lock()
	defer b.c.unlock()
	b.rate = rate
}

// Expire ends the client's session at the coordinator now, as an operator can. A
// client that can be reached learns of it at once. Without a session, nothing
// happens.
func (b *Backend) Expire() {
	b.c.lock()
	defer b.c.unlock()
	for _, l := range b.c.sorted() {
		if l.of == b {
			b.c.expire(l, fmt.Errorf("%w: an operator ended it", backend.ErrSessionEnded))
		}
	}
}

// LoseAnswer breaks the connection after the next call of one of ops (any but a
// heartbeat, where none is given) has taken effect, before its answer is out.
// Calls in flight share its fate. The client connects anew at once and resolves
// what it can: only Put and Delete then fail with [backend.ErrUnavailable]. Several
// LoseAnswer add up.
func (b *Backend) LoseAnswer(ops ...Op) {
	b.c.lock()
	defer b.c.unlock()
	b.loseAnswer = append(b.loseAnswer, slices.Clone(ops))
}

// LoseRequest is [Backend.LoseAnswer] for a call that never takes effect.
func (b *Backend) LoseRequest(ops ...Op) {
	b.c.lock()
	defer b.c.unlock()
	b.loseRequest = append(b.loseRequest, slices.Clone(ops))
}

// Kill makes the client vanish without a word to the coordinator, as a process
// does that crashes: what it joined stands until the coordinator ends the session
// by its own clock. Here the session ends at once, and the client is closed.
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

// Disconnect breaks the connection now, with all that is on its way. The client
// connects anew at once, and its session goes on.
func (b *Backend) Disconnect() {
	b.c.lock()
	defer b.c.unlock()
	b.sever()
}

// losses are the calls to lose: for each the ops that it may be.
type losses [][]Op

// take reports whether a call of op is to be lost, and if so counts it.
func (l *losses) take(op Op) bool {
	i := slices.IndexFunc(*l, func(ops []Op) bool {
		return slices.Contains(ops, op) || len(ops) == 0 && op != OpHeartbeat
	})
	if i < 0 {
		return false
	}
	*l = slices.Delete(*l, i, i+1)
	return true
}

// Restart stops and starts the server: connections break, sessions have their
// whole time again, data is kept. A paused coordinator stays paused.
func (c *Coordinator) Restart() {
	c.lock()
	defer c.unlock()
	for _, l := range c.sorted() {
		c.renew(l)
	}
	c.severAll()
}

// Pause stops the coordinator: nothing passes in either direction, and the clocks
// of its sessions stand still. The clients' own clocks go on, so their sessions
// end by their deadlines. Operators' acts still take effect.
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

// Resume undoes [Coordinator.Pause]. What was sent meanwhile arrives at once.
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

// Remove deletes the member under key, as an operator can: pinned or not, whoever
// owns it. It reports whether there was one.
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

// Drop deletes the election's path, as an operator can: its members, its record,
// and the numbering of its keys, which begins anew. The log goes on, so positions
// keep growing.
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

// Reset rebuilds the coordinator empty: lines, records, sessions and the log.
// Clients that saw a higher index than the new log has when they come back fail
// with [backend.ErrReset] from then on.
func (c *Coordinator) Reset() {
	c.lock()
	defer c.unlock()
	for _, l := range c.leases {
		l.timer.Stop()
	}
	clear(c.leases)
	c.store = newStore(c.start)
	c.severAll()
}

// Snapshot remembers lines, records, sessions and the index of the log. restore puts
// them back, as an operator restores a backup: what happened since is lost, and
// connections break. The sessions that were live then are live again and have their
// whole time. Clients that saw a higher index fail with [backend.ErrReset] from when they
// are told a lower one on. restore may be called more than once.
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
		c.store = kept.clone()
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
