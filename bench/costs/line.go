package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

const (
	// settle is how long a line is left alone before each handover. Nothing tells that all watch.
	settle = 20 * time.Millisecond
	// herdSettle comes on top for each candidate of a library that wakes all of them.
	herdSettle = 300 * time.Microsecond
	// patience bounds what should take a moment.
	patience = time.Minute
)

// A line is one library's candidates of one election, in processes of their own.
type line struct {
	place     *place
	library   candidate.Library
	election  string
	processes []*coordtest.Peer
	proxies   []*proxy.Proxy // of the processes, where bytes are counted
	n         int            // how many stand
	leader    *coordtest.Peer
	events    chan coordtest.PeerEvent
	dir       string
}

// How are settings of a line that not all need.
type how struct {
	session time.Duration
	idle    bool // its leaders do not ask whether they lead
	counted bool // its bytes are counted, which takes time
}

// open starts the processes of a line, in which nobody stands yet. The caller closes it.
func open(ctx context.Context, p *place, l candidate.Library, processes int, h how) (_ *line, err error) {
	q := &line{
		place: p, library: l, election: fmt.Sprintf("costs-%08x", rand.Uint32()), events: make(chan coordtest.PeerEvent, 64),
	}
	defer func() {
		if err != nil {
			q.close()
		}
	}()
	if q.dir, err = os.MkdirTemp("", "costs-"); err != nil {
		return nil, err
	}
	return q, q.start(ctx, processes, h)
}

// start starts more processes, and waits until they are ready.
func (q *line) start(ctx context.Context, processes int, h how) error {
	for range processes {
		addr := q.place.addr
		if h.counted && q.library.Coordinator != candidate.Local {
			x, err := coordtest.StartProxy(addr)
			if err != nil {
				return err
			}
			q.proxies = append(q.proxies, x)
			addr = x.Addr()
		}
		peer, err := candidate.Start(candidate.Settings{
			Library: q.library, Addresses: []string{addr}, Election: q.election, ID: fmt.Sprint("process-", len(q.processes)), Session: h.session, Idle: h.idle,
		}, q.events, q.dir)
		if err != nil {
			return err
		}
		q.processes = append(q.processes, peer)
	}
	ready := 0
	return q.await(ctx, func(e coordtest.PeerEvent) bool {
		if e.What == "ready" {
			ready++
		}
		return ready == processes
	})
}

// close kills the processes, and removes what they wrote.
func (q *line) close() {
	go func() {
		for range q.events { // or they could not be killed
		}
	}()
	for _, p := range q.processes {
		p.Kill()
	}
	close(q.events)
	for _, x := range q.proxies {
		x.Close()
	}
	os.RemoveAll(q.dir)
}

// await passes events to done until it says so.
func (q *line) await(ctx context.Context, done func(e coordtest.PeerEvent) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("nothing happened for a minute"))
	defer cancel()
	for {
		select {
		case e := <-q.events:
			if strings.HasPrefix(e.What, "failed") || strings.HasPrefix(e.What, "lost") {
				return fmt.Errorf("%s says %s; its log: %s", e.Peer.ID, e.What, e.Peer.Log())
			}
			if done(e) {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// join has n more candidates join, of one process after the other.
func (q *line) join(n int, processes ...*coordtest.Peer) error {
	for i := range n {
		if err := processes[i%len(processes)].Send("join"); err != nil {
			return err
		}
	}
	q.n += n
	return nil
}

// elected waits for the next leader, and returns when it was elected.
func (q *line) elected(ctx context.Context) (at time.Time, err error) {
	err = q.await(ctx, func(e coordtest.PeerEvent) bool {
		if e.What == "elected" {
			q.leader, at = e.Peer, e.At
		}
		return e.What == "elected"
	})
	return at, err
}

// stand waits until all stand in line, and fails after limit. It returns how many do. Where
// nobody can tell it takes them all to stand.
func (q *line) stand(ctx context.Context, limit time.Duration) (stood int, err error) {
	return q.standIn(ctx, "", q.n, limit)
}

// standIn is stand for n, in the election whose name ends with the suffix.
func (q *line) standIn(ctx context.Context, suffix string, n int, limit time.Duration) (stood int, err error) {
	if q.library.Unseen {
		return n, nil
	}
	end := time.Now().Add(limit)
	for {
		asked := time.Now()
		stood, err = q.place.standing(ctx, q.library, q.election+suffix)
		if err != nil || stood == n {
			return stood, err
		}
		if time.Now().After(end) {
			return stood, fmt.Errorf("%d of %d stand in line after %v", stood, n, limit)
		}
		time.Sleep(max(time.Millisecond, 4*time.Since(asked))) // so that counting costs little
	}
}

// handover makes the leader resign, and returns how long it took until the next one led. The old
// leader joins again.
func (q *line) handover(ctx context.Context) (time.Duration, error) {
	if _, err := q.stand(ctx, patience); err != nil {
		return 0, err
	}
	time.Sleep(settle)
	if q.library.Herd {
		time.Sleep(time.Duration(q.n) * herdSettle)
	}
	old := q.leader
	if err := old.Send("leave"); err != nil {
		return 0, err
	}
	var begun, elected time.Time
	left := false
	err := q.await(ctx, func(e coordtest.PeerEvent) bool {
		switch e.What {
		case "leaving":
			begun = e.At
		case "elected":
			q.leader, elected = e.Peer, e.At
		case "left":
			left = true
		}
		return left && !elected.IsZero()
	})
	if err != nil {
		return 0, err
	}
	q.n--
	return elected.Sub(begun), q.join(1, old)
}

// tell sends a command to all processes, and returns their answers.
func (q *line) tell(ctx context.Context, command, answer string) (answers []string, err error) {
	for _, p := range q.processes {
		if err := p.Send(command); err != nil {
			return nil, err
		}
	}
	return answers, q.await(ctx, func(e coordtest.PeerEvent) bool {
		if a, is := strings.CutPrefix(e.What, answer); is {
			answers = append(answers, a)
		}
		return len(answers) == len(q.processes)
	})
}

// bytes returns how many have passed in both directions.
func (q *line) bytes() (n int64) {
	for _, x := range q.proxies {
		s := x.Stats()
		n += s.ToServer + s.ToClient
	}
	return n
}
