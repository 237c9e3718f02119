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
	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

const (
	// linger is how long one leader must have led alone for a run to be over.
	linger = time.Second
	// readyTimeout bounds what comes before the fault.
	readyTimeout = 90 * time.Second
	// keepsFor is for how many session times a leader is observed that may lead on: a session
	// of Consul lasts two after its server has started, and its lock-delay comes on top.
	keepsFor = 5
)

// A run is one fault on one pair of candidates.
type run struct {
	library  candidate.Library
	fault    fault
	session  time.Duration
	patience time.Duration
	seed     uint32

	place    *place
	version  string // of the servers
	election string
	dir      string
	events   chan coordtest.PeerEvent
	leader   *contender
	next     *contender
	moment   time.Duration     // of the fault, after the second has joined
	seat     *coordtest.Server // where the leader sits, if the fault wants that

	notes                notebook
	faultAt              time.Time
	pausedFrom, pausedTo time.Time         // zero where there was none
	missed               bool              // [outcome] Missed
	crashed              *coordtest.Server // by the fault, for good
}

func never() bool { return false }

// do measures once.
func (r *run) do(ctx context.Context) (o outcome, err error) {
	draw := rand.New(rand.NewPCG(uint64(r.seed), 0))
	r.election = fmt.Sprintf("bench-%08x", draw.Uint32())
	r.moment = r.session/3 + time.Duration(draw.Int64N(int64(r.session/3)))
	r.events = make(chan coordtest.PeerEvent, 1000)
	r.notes = newNotebook(r.election)
	if r.place, err = start(ctx, r.library.Coordinator, r.fault, r.session); err != nil {
		return outcome{}, err
	}
	defer r.place.Stop()
	if r.version, err = candidate.ServerVersion(ctx, r.library.Coordinator, r.place.Servers()[0].Addr()); err != nil {
		return outcome{}, err
	}
	if r.dir, err = os.MkdirTemp("", "faults-"); err != nil {
		return outcome{}, err
	}
	defer func() {
		if err == nil || ctx.Err() != nil { // otherwise the logs may tell why
			// What cannot be removed is left to whoever cleans the temporary folder.
			_ = os.RemoveAll(r.dir)
		}
	}()
	r.leader, r.next = &contender{id: "a"}, &contender{id: "b"}
	defer r.leader.stop()
	defer r.next.stop()
	limited, cancel := context.WithTimeout(ctx, 3*readyTimeout+6*r.patience)
	defer cancel()
	if err := errors.Join(r.measure(limited), r.ended()); err != nil {
		return outcome{}, fmt.Errorf("%w (logs of the candidates: %s)", err, r.dir)
	}
	return r.outcome(), nil
}

// outcome is what the run shows, which ends now.
func (r *run) outcome() outcome {
	end := r.notes.at(time.Now())
	o := judge(r.history(end), r.notes.at(r.faultAt), end)
	o.Missed, o.Failed = r.missed, r.notes.failed
	return o
}

func (r *run) measure(ctx context.Context) error {
	if r.fault.sits {
		var err error
		if r.seat, err = r.place.follower(ctx, 0); err != nil {
			return err
		}
	}
	if err := r.enter(ctx, r.leader); err != nil {
		return err
	}
	if err := r.expect(ctx, "it leads", func() bool { return r.notes.leads[r.leader.id] }); err != nil {
		return err
	}
	if r.seat != nil { // it stays where it is as long as it can
		r.leader.each((*proxy.Proxy).Heal)
	}
	if err := r.enter(ctx, r.next); err != nil {
		return err
	}
	// Nothing tells that a candidate of any library waits. The fault comes at a random moment
	// between two heartbeats.
	if err := r.wait(ctx, r.moment, never); err != nil {
		return err
	}
	if !r.notes.leads[r.leader.id] || r.notes.leads[r.next.id] {
		return fmt.Errorf("before the fault, the leaders were %v", r.notes.leads)
	}
	r.faultAt = time.Now()
	r.notes.begin(r.faultAt)
	if err := r.fault.do(ctx, r); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	return r.observe(ctx)
}

// ended returns an error if a process has ended that the fault has not killed: nobody knows what it would have done.
func (r *run) ended() error {
	for _, c := range []*contender{r.leader, r.next} {
		if c.peer != nil && c.peer.Ended() && !c.crashed {
			return fmt.Errorf("the process of %s has ended by itself", c.id)
		}
	}
	for _, s := range r.place.Servers() {
		if s.Ended() && s != r.crashed {
			return fmt.Errorf("server %s has ended by itself; its log ends:\n%s", s.Addr(), s.LogTail(5))
		}
	}
	return nil
}

// enter starts a candidate and makes it join.
func (r *run) enter(ctx context.Context, c *contender) error {
	servers := r.place.Servers()
	if r.library.Coordinator == candidate.Consul && len(servers) > 1 {
		i := strings.Index("ab", c.id)
		s, err := r.place.follower(ctx, i)
		if err != nil {
			return err
		}
		servers = []*coordtest.Server{s}
	}
	var addrs []string
	for _, s := range servers {
		p, err := coordtest.StartProxy(s.Addr())
		if err != nil {
			return err
		}
		c.proxies = append(c.proxies, p)
		addrs = append(addrs, p.Addr())
		if r.seat != nil && (s == r.seat) != (c == r.leader) {
			p.Refuse()
		}
	}
	var err error
	if c.peer, err = candidate.Start(candidate.Settings{
		Library: r.library, Addresses: addrs, Election: r.election, ID: c.id, Session: r.session,
	}, r.events, r.dir); err != nil {
		return err
	}
	if err := r.expect(ctx, c.id+" is ready", func() bool { return r.notes.ready[c.id] }); err != nil {
		return err
	}
	return c.peer.Send("join")
}

// expect waits for what must come about before the fault.
func (r *run) expect(ctx context.Context, what string, cond func() bool) error {
	if err := r.wait(ctx, readyTimeout, func() bool { return cond() || r.notes.failed != "" }); err != nil {
		return err
	}
	if !cond() {
		return fmt.Errorf("not so: %s; failed: %q", what, r.notes.failed)
	}
	return nil
}

// observe waits until one candidate has led alone for a while, nothing has changed for as long
// as patience lasts, or changes go on for three times that.
func (r *run) observe(ctx context.Context) error {
	for {
		quiet, limit := time.Since(r.notes.last), r.limit()
		if quiet > limit || r.settled() && quiet > linger || time.Since(r.faultAt) > 3*r.patience {
			return nil
		}
		changed := r.notes.last
		pause := limit - quiet
		if r.settled() {
			pause = linger - quiet
		} else if r.fault.keeps {
			pause = time.Second // being settled may be a matter of time
		}
		if err := r.wait(ctx, pause+time.Millisecond, func() bool { return r.notes.last != changed }); err != nil {
			return err
		}
	}
}

// limit is how long nothing may change. A vacancy ends by itself and gets twice the patience.
func (r *run) limit() time.Duration {
	if r.notes.leads[r.leader.id] || r.notes.leads[r.next.id] {
		return r.patience
	}
	return 2 * r.patience
}

// settled reports whether exactly one candidate leads who may lead on.
func (r *run) settled() bool {
	one := r.notes.leads[r.leader.id] != r.notes.leads[r.next.id]
	return one && (r.notes.ended[r.leader.id] || r.fault.keeps && time.Since(r.faultAt) > keepsFor*r.session)
}

// wait takes notes for some time, or until cond is true.
func (r *run) wait(ctx context.Context, d time.Duration, cond func() bool) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !cond() {
		select {
		case e := <-r.events:
			r.notes.note(e)
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// history returns the notes with the fault, which lasts until the end.
func (r *run) history(end time.Duration) *history.History {
	h := &history.History{Events: r.notes.events, Faults: []history.Fault{
		{Kind: r.fault.name, Target: r.leader.id, From: r.notes.at(r.faultAt), To: end},
	}}
	if !r.pausedFrom.IsZero() {
		to := end
		if !r.pausedTo.IsZero() {
			to = r.notes.at(r.pausedTo)
		}
		h.Faults = append(h.Faults, history.Fault{Kind: paused, Target: r.leader.id, From: r.notes.at(r.pausedFrom), To: to})
	}
	return history.Merge(h)
}
