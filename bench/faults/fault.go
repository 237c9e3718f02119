package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/conformance/proxy"
)

// libraries are what is put under faults.
var libraries = underFaults(candidate.Libraries)

func underFaults(all []candidate.Library) []candidate.Library {
	return slices.DeleteFunc(slices.Clone(all), func(l candidate.Library) bool { return l.CostsOnly })
}

// A fault is what happens to a leader, or to its coordinator.
type fault struct {
	name  string
	title string   // for the table
	short string   // for the short table
	words string   // what is done
	on    []string // coordinators; nil is all
	nodes int      // servers; 0 is one
	// sits makes the leader sit on a server that does not lead, and isolates can cut that
	// server off.
	sits bool
	// keeps says that a leader may well lead on. It is then observed for a while.
	keeps bool
	// outside says why the promise that no two lead does not cover the fault, which is then
	// reported apart. Empty where it does.
	outside string
	do      func(ctx context.Context, r *run) error
}

// possible reports whether the fault can be put on the library, and on its coordinator.
func (f fault) possible(l candidate.Library) bool {
	return (f.on == nil || slices.Contains(f.on, l.Coordinator)) && !slices.Contains(lacks[l.ID()], f.name)
}

// lacks are faults that make no sense for a library: who holds an advisory lock has no key, and asks the server nothing where nothing is to
// be asked; client-go and River know no sessions.
var lacks = map[string][]string{
	"postgres: pg_advisory_lock, pgx":                 {"late", "deleted", "cut-deleted"},
	"postgres: pg_advisory_lock (pinged), pgx":        {"deleted", "cut-deleted"},
	"postgres: pg_try_advisory_lock (pool), pgx":      {"deleted", "cut-deleted"},
	"postgres: River's elector":                       {"session"},
	"kubernetes: client-go leaderelection":            {"session"},
	candidate.Kubernetes + ": " + candidate.Releases:  {"session"},
	candidate.Kubernetes + ": " + candidate.NoTimeout: {"session"},
}

// Why the promise does not cover an operator's act.
const (
	takenAway = "the place goes at once, which no deadline foresees, and the coordinator tells the leader and the next in line " +
		"at the same moment: for some milliseconds the next one may be elected and the leader not have heard of it. Until then " +
		"no question to its library can know; a fencing token helps, or a write that the coordinator itself guards."
	takenUnheard = "the place goes at once, and the leader hears nothing: it acts until its deadline, and no client of any " +
		"library can know better; a fencing token helps, or a write that the coordinator itself guards."
)

var faults = []fault{
	{
		name: "crash", title: "The leader's process crashes", short: "crash",
		words: "SIGKILL",
		do: func(_ context.Context, r *run) error {
			r.leader.crash(r)
			return nil
		},
	},
	{
		name: "cut", title: "The leader is cut off", short: "cut off",
		words: "nothing passes between it and the coordinator, in either direction; no connection is closed",
		do: func(_ context.Context, r *run) error {
			r.leader.each((*proxy.Proxy).Cut)
			return nil
		},
	},
	{
		name: "late", title: "An answer comes late, then the leader is cut off", short: "late answer, then cut off",
		words: "the answer to the next request, mostly a heartbeat, comes seven twelfths of the session's time late; then as above. " +
			"Whose own times are shorter has given up by then, and is only cut off",
		do: late,
	},
	{
		name: "answers", title: "Only answers are lost", short: "answers lost",
		words: "what the leader sends on its connections arrives, and it hears nothing; new connections do not come about",
		do: func(_ context.Context, r *run) error {
			r.leader.each(func(p *proxy.Proxy) { p.Block(proxy.ToClient) })
			return nil
		},
	},
	{
		name: "isolated", title: "The leader's server is cut off from the others", short: "its server cut off",
		words: "three servers, of which the leader sits on a follower; it knows and reaches the other two",
		on:    []string{candidate.ZooKeeper}, nodes: 3, sits: true,
		do: func(_ context.Context, r *run) error { return r.place.Isolate(r.seat) },
	},
	{
		name: "pause", title: "The leader's process is paused, and resumed when another leads", short: "paused, resumed",
		words: "SIGSTOP; SIGCONT a second after the next one was elected, and none if nobody is. Counted from the resumption",
		do:    pause,
	},
	{
		name: "restart", title: "The coordinator crashes and is started again", short: "coordinator restarted",
		words: "a single server, SIGKILL; its data stay. On Kubernetes it is the API server",
		keeps: true,
		do:    func(ctx context.Context, r *run) error { return r.place.Servers()[0].Restart(ctx) },
	},
	{
		name: "failover", title: "The coordinator's leader crashes", short: "coordinator's leader crashed",
		words: "one of three servers, SIGKILL; it stays down. On Consul, whose client knows one server, the candidates sit on the other two. " +
			"On PostgreSQL it is the primary, whose commits wait for a standby; an operator then promotes that",
		on:    []string{candidate.Etcd, candidate.Consul, candidate.ZooKeeper, candidate.Postgres},
		nodes: 3, keeps: true,
		do: func(ctx context.Context, r *run) error {
			s, err := r.place.leader(ctx)
			if err != nil {
				return err
			}
			r.crashed = s
			s.Kill()
			if r.place.promote != nil {
				return r.place.promote(ctx)
			}
			return nil
		},
	},
	{
		name: "session", title: "An operator ends the leader's session", short: "session ended by operator",
		words: "etcd: the lease is revoked; Consul: the session is destroyed; PostgreSQL: the row of the session is deleted, or the connection ended that has " +
			"the lock; Kubernetes: the Lease of the session is deleted, which client-go and River do not have; ZooKeeper has no such command",
		on: []string{candidate.Etcd, candidate.Consul, candidate.Postgres, candidate.Kubernetes}, outside: takenAway,
		do: func(ctx context.Context, r *run) error { return r.place.operator.endSession(ctx, r.election) },
	},
	{
		name: "deleted", title: "An operator deletes the leader's key", short: "key deleted by operator",
		words:   "the key, znode, row or Lease that the leader holds; its session lives on",
		outside: takenAway,
		do:      func(ctx context.Context, r *run) error { return r.place.operator.evict(ctx, r.election) },
	},
	{
		name: "cut-deleted", title: "The leader is cut off, and an operator deletes its key", short: "cut off, key deleted",
		words: "at once", outside: takenUnheard,
		do: func(ctx context.Context, r *run) error {
			r.leader.each((*proxy.Proxy).Cut)
			return r.place.operator.evict(ctx, r.election)
		},
	},
}

// late delivers an answer late, and cuts the leader off. Whatever the leader asks after the first
// request stays with the proxy, so that exactly one answer is late. If the leader hangs up before
// the answer comes, it misses that.
func late(ctx context.Context, r *run) error {
	if len(r.leader.proxies) != 1 {
		return errors.New("needs a leader of one connection")
	}
	p, hold := r.leader.proxies[0], r.session*7/12
	p.Delay(proxy.ToClient, hold)
	before := p.Stats()
	request, cancel := context.WithTimeout(ctx, 2*r.session)
	defer cancel()
	if err := p.Wait(request, func(s proxy.Stats) bool { return s.ToServer > before.ToServer }); err != nil {
		return fmt.Errorf("the leader asks nothing: %w", err)
	}
	p.Block(proxy.ToServer)
	due := time.Now().Add(hold)
	answer, cancel := context.WithTimeout(ctx, hold+time.Second)
	defer cancel()
	if err := p.Wait(answer, func(s proxy.Stats) bool {
		r.missed = s.ToClient == before.ToClient && s.Ended > before.Ended
		return r.missed || s.ToClient > before.ToClient
	}); err != nil {
		return fmt.Errorf("the leader is not answered: %w", err)
	}
	if err := r.wait(ctx, max(0, time.Until(due))+100*time.Millisecond, never); err != nil { // all of the answer
		return err
	}
	p.Block(proxy.ToClient)
	return nil
}

// pause stops the leader until another leads. If patience with a vacancy ends before that, the leader stays as it is.
func pause(ctx context.Context, r *run) error {
	if err := r.leader.peer.Pause(); err != nil {
		return err
	}
	r.pausedFrom = time.Now()
	if err := r.wait(ctx, 2*r.patience, func() bool { return r.notes.leads[r.next.id] }); err != nil {
		return err
	}
	if !r.notes.leads[r.next.id] {
		return nil
	}
	if err := r.wait(ctx, time.Second, never); err != nil {
		return err
	}
	r.pausedTo = time.Now()
	r.notes.last = r.pausedTo
	return r.leader.peer.Resume()
}
