package memory

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/backend"
)

// A pipe is one direction of a connection. It delivers messages in order, each no earlier
// than its delay after it was sent. While the pipe is cut or the coordinator is paused, it
// delivers nothing. Messages that were sent meanwhile arrive when that is over, as with TCP, which
// would send them again.
type pipe struct {
	c     *Coordinator
	cut   bool
	delay time.Duration
	queue []message
	timer *time.Timer // for the first message, if that is not due yet
	ready bool        // is in c.ready
}

type message struct {
	due     time.Time
	deliver func()
}

func (p *pipe) push(deliver func()) {
	p.queue = append(p.queue, message{time.Now().Add(p.delay), deliver})
	p.wake()
}

// wake makes the coordinator pump the pipe before it is unlocked.
func (p *pipe) wake() {
	if !p.ready {
		p.ready = true
		p.c.ready = append(p.c.ready, p)
	}
}

// pump delivers what is due.
func (p *pipe) pump() {
	for len(p.queue) > 0 && !p.cut && !p.c.paused {
		if d := time.Until(p.queue[0].due); d > 0 {
			p.arm(d)
			return
		}
		deliver := p.queue[0].deliver
		p.queue = slices.Delete(p.queue, 0, 1)
		deliver()
	}
}

func (p *pipe) arm(d time.Duration) {
	if p.timer != nil {
		p.timer.Reset(d)
		return
	}
	p.timer = time.AfterFunc(d, func() {
		p.c.lock()
		defer p.c.unlock()
		p.wake()
	})
}

// clear loses all messages under way.
func (p *pipe) clear() {
	p.queue = nil
	if p.timer != nil {
		p.timer.Stop()
	}
}

// A call is a request on the client's side, from sending until the answer. It may be sent
// over several connections, one after another.
type call struct {
	op     Op
	under  *session               // the session that it fails with; nil for a call that opens or closes one
	apply  func() (any, error)    // runs at the coordinator
	topics []topic                // what apply waits for if it returns errWait
	lost   lost                   // what to do when the connection breaks
	n      uint64                 // number within the session
	then   func(v any, err error) // runs with the answer, before the caller has it; may be nil

	sent      time.Time // when it was last sent
	abandoned bool      // the caller has gone
	finished  bool
	value     any
	err       error
	done      chan struct{} // closed when finished
}

// lost says what the client does with a call if the connection breaks before the answer has
// come.
type lost uint8

const (
	lostAgain   lost = iota // send it again: it changes nothing, or may be done twice
	lostResolve             // send it again under its number: the coordinator knows whether it ran
	lostUnknown             // report ErrUnavailable
)

// send sends the call over the client's connection.
func (b *Backend) send(cl *call) {
	if cl.done == nil {
		cl.done = make(chan struct{})
	}
	b.calls = append(b.calls, cl)
	b.transmit(cl)
}

func (b *Backend) transmit(cl *call) {
	cl.sent = time.Now()
	if !b.broken {
		b.up.push(func() { b.c.serve(&request{b, cl}) })
	}
}

// push sends from the coordinator to the client.
func (b *Backend) push(deliver func()) {
	if !b.broken && !b.gone {
		b.down.push(deliver)
	}
}

// finish ends the call with its answer.
func (b *Backend) finish(cl *call, v any, err error) {
	if cl.finished {
		return
	}
	cl.finished, cl.value, cl.err = true, v, err
	b.calls = slices.DeleteFunc(b.calls, func(o *call) bool { return o == cl })
	if cl.then != nil {
		cl.then(v, err)
	}
	close(cl.done)
}

// sever breaks the connection. Both sides know at once, unless the client is cut off: then
// its messages reach nobody until it is healed.
func (b *Backend) sever() {
	b.discard()
	b.broken = b.up.cut || b.down.cut
	if !b.broken {
		b.reconnect()
	}
}

// discard loses all that is under way between client and coordinator.
func (b *Backend) discard() {
	b.up.clear()
	b.down.clear()
	b.c.unpark(func(r *request) bool { return r.from == b })
}

// breakOff breaks the connection. The client makes the next one only after a hundredth of the
// session time, as if it had been refused.
func (b *Backend) breakOff() {
	b.discard()
	b.broken = true
	b.forgo()
	if b.again != nil {
		b.again.Reset(b.c.ttl / 100)
		return
	}
	b.again = time.AfterFunc(b.c.ttl/100, func() {
		b.c.lock()
		defer b.c.unlock()
		if b.broken && !b.up.cut && !b.down.cut {
			b.reconnect()
		}
	})
}

// forgo fails the calls whose effect cannot be known without the connection.
func (b *Backend) forgo() {
	for _, cl := range slices.Clone(b.calls) {
		if cl.lost == lostUnknown {
			b.finish(cl, nil, errLostAnswer)
		}
	}
}

// reconnect makes a new connection, and sends again what has had no answer yet. If none can
// be made, it waits for [Backend.Heal].
func (b *Backend) reconnect() {
	if b.hidden {
		b.broken = true
		b.forgo()
		return
	}
	b.broken = false
	for _, cl := range slices.Clone(b.calls) {
		switch {
		case cl.finished:
		case cl.lost == lostUnknown:
			b.finish(cl, nil, errLostAnswer)
		default:
			b.transmit(cl)
		}
	}
	if b.session != nil {
		b.session.beat()
	}
}

// errLostAnswer is the error of a call whose effect cannot be known.
var errLostAnswer = fmt.Errorf("%w: the connection broke before the answer came; read again what the call was to change", backend.ErrUnavailable)

// hangUp replaces the connection by a new one. What is under way is lost.
func (b *Backend) hangUp() {
	b.discard()
	b.reconnect()
}

// release tells the coordinator that the session is over.
func (b *Backend) release(id uint64) *call {
	cl := &call{op: OpClose}
	cl.apply = func() (any, error) {
		if l := b.c.leases[id]; l != nil {
			b.c.release(l)
		}
		return nil, nil
	}
	b.send(cl)
	return cl
}

// receive handles an answer that has arrived.
func (b *Backend) receive(cl *call, v any, err error, index uint64) {
	if cl.finished {
		return
	}
	if s := cl.under; s != nil {
		if errors.Is(err, errNoSession) {
			b.told(s.id, fmt.Errorf("%w: the coordinator has ended it", backend.ErrSessionEnded), index)
			return
		}
		if s.alive() != nil { // its deadline has passed: the answer comes too late
			return
		}
	}
	if cl.under != nil && index < b.seen { // a backup has brought the session back, with a shorter log
		cl.under.end(fmt.Errorf("%w: %w", backend.ErrSessionEnded, b.wentBack(index)), false)
		return
	}
	b.seen = max(b.seen, index)
	b.finish(cl, v, err)
}

// told handles the notification that the coordinator has ended the session.
func (b *Backend) told(id uint64, why error, index uint64) {
	if b.session == nil || b.session.id != id {
		return
	}
	if index < b.seen {
		why = fmt.Errorf("%w: %w", backend.ErrSessionEnded, b.wentBack(index))
	}
	b.session.end(why, true)
}

// wentBack notes that the log has gone back. From then on no session is opened, not even when
// the log has come as far again: what it has then is not what it had before.
func (b *Backend) wentBack(index uint64) error {
	if b.reset == nil {
		b.reset = fmt.Errorf("%w: its log is at %d and was at %d; raise the fence of each election above every token that anybody holds, and then restart this process",
			backend.ErrReset, index, b.seen)
	}
	return b.reset
}
