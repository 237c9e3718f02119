package memory

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Coordinator is the server: it keeps lines, records and sessions, behind one lock and with
// one index of its log. Any number of clients talk to it; see [Coordinator.Client]. It is
// safe for concurrent use, owns no goroutine, and need not be closed.
type Coordinator struct {
	ttl   time.Duration
	slack time.Duration
	start uint64

	mu       sync.Mutex // guards all below, and the fields of all clients
	store    store
	leases   map[uint64]*lease
	parked   map[topic][]*request // blocking calls that wait for an event
	paused   bool
	clients  []*Backend
	keep     time.Duration // how far the client lags behind that does so most
	past     []version     // what was so, as long as one does, the oldest first
	ready    []*pipe       // pipes that may have something to deliver
	ids      uint64
	requests Counts
	wakeups  Counts
	bytes    map[string]int64 // in answers, by client
}

// New returns a coordinator without lines and records. o may be nil.
func New(o *Options) *Coordinator {
	if o == nil {
		o = new(Options)
	}
	return &Coordinator{
		ttl:      cmp.Or(max(0, o.TTL), DefaultTTL),
		slack:    o.Slack,
		start:    o.Index,
		store:    newStore(o.Index),
		leases:   make(map[uint64]*lease),
		parked:   make(map[topic][]*request),
		requests: make(Counts),
		wakeups:  make(Counts),
		bytes:    make(map[string]int64),
	}
}

// Client returns a new client, with a connection and a session of its own, even if another
// client has the same name. The name labels the counts of [Coordinator.Requests]. If it is
// empty, the client gets a number. The caller closes the client.
func (c *Coordinator) Client(name string) *Backend {
	c.lock()
	defer c.unlock()
	id := c.newID()
	if name == "" {
		name = fmt.Sprintf("client-%d", id)
	}
	b := &Backend{c: c, name: name, rate: 1}
	b.up.c, b.down.c = c, c
	c.clients = append(c.clients, b)
	return b
}

func (c *Coordinator) lock() { c.mu.Lock() }

// unlock delivers messages until none is due any more, and then unlocks. Deliveries never
// call each other. Each only makes pipes ready, so that a chain of requests, answers and
// notifications needs no recursion and has one order.
func (c *Coordinator) unlock() {
	for len(c.ready) > 0 {
		p := c.ready[0]
		c.ready = slices.Delete(c.ready, 0, 1)
		p.ready = false
		p.pump()
	}
	c.remember()
	c.mu.Unlock()
}

// newID returns a number that was never used before, not even before a Reset.
func (c *Coordinator) newID() uint64 {
	c.ids++
	return c.ids
}

// A request is a call as it has arrived at the coordinator.
type request struct {
	from *Backend
	call *call
}

// serve handles a request that has arrived.
func (c *Coordinator) serve(r *request) {
	c.requests[Source{r.from.name, r.call.op}]++
	if r.from.loseRequest.take(r.call.op) {
		r.from.sever()
		return
	}
	if r.from.hold.takes(r.call) {
		r.from.sever()
		return
	}
	if r.from.severed > 0 {
		// Every other request takes effect before the connection breaks.
		if r.from.severed++; r.from.severed%2 == 0 {
			_, _ = r.call.apply()
		}
		r.from.breakOff()
		c.notify()
		return
	}
	c.apply(r)
	c.notify()
}

// apply runs the request and answers it, or parks it until its event comes. It reports false
// if it has parked it.
func (c *Coordinator) apply(r *request) bool {
	v, err := r.call.apply()
	if err == errWait {
		for _, t := range r.call.topics {
			if !slices.Contains(c.parked[t], r) {
				c.parked[t] = append(c.parked[t], r)
			}
		}
		return false
	}
	for _, t := range r.call.topics {
		if i := slices.Index(c.parked[t], r); i >= 0 {
			if c.parked[t] = slices.Delete(c.parked[t], i, i+1); len(c.parked[t]) == 0 {
				delete(c.parked, t)
			}
		}
	}
	if r.from.loseAnswer.take(r.call.op) {
		r.from.sever()
		return true
	}
	c.bytes[r.from.name] += size(v)
	index := c.store.index
	r.from.answered = max(r.from.answered, r.from.heard(r.call.op))
	r.from.push(func() { r.from.receive(r.call, v, err, index) })
	return true
}

// notify runs the parked calls that wait for the events that have happened, in the order in
// which they were parked, and no others.
func (c *Coordinator) notify() {
	for len(c.store.events) > 0 {
		t := c.store.events[0]
		c.store.events = c.store.events[1:]
		waiting := c.parked[t]
		delete(c.parked, t)
		for _, r := range waiting {
			if c.apply(r) {
				c.wakeups[Source{r.from.name, r.call.op}]++
			}
		}
	}
}

// unpark forgets the parked calls for which drop reports true.
func (c *Coordinator) unpark(drop func(*request) bool) {
	for t, waiting := range c.parked {
		waiting = slices.DeleteFunc(waiting, drop)
		if len(waiting) == 0 {
			delete(c.parked, t)
		} else {
			c.parked[t] = waiting
		}
	}
}
