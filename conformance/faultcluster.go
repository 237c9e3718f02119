package conformance

import (
	"fmt"
	"slices"
	"sync"
)

// clusterFaults hit single servers of three or more. Those who are left are a quorum
// unless the rule says otherwise, so somebody leads meanwhile where a client does not
// hang on the server that is hit.
var clusterFaults = []disturbance{{
	id: "rolling", title: "each server is restarted in turn",
	text:    "Each server of the cluster is killed and started with its data, one after the other; in between somebody leads.",
	needs:   []Fault{Cluster},
	vacancy: afterRecovery,
	happens: func(s *story) {
		for i := range s.servers() {
			s.killed(i)()
			s.leads()
		}
	},
}, {
	id: "leader-killed", title: "the coordinator's own leader crashes",
	text:    "The server that leads the cluster is killed, and started after longer than a session. The leading candidate is connected to it, where one of them is.",
	needs:   []Fault{Cluster},
	vacancy: afterRecovery,
	happens: lone((*story).chief, (*story).killed),
}, {
	id: "leader-paused", title: "the coordinator's own leader stands still",
	text:    "The server that leads the cluster is paused for longer than a session. The leading candidate is connected to it, where one of them is.",
	needs:   []Fault{Cluster},
	vacancy: afterRecovery,
	happens: lone((*story).chief, (*story).paused),
}, {
	id: "leader-cut", title: "the coordinator's own leader is isolated",
	text:    "The server that leads the cluster is cut off from the other servers, not from its clients, for longer than a session. The leading candidate is connected to it, where one of them is.",
	needs:   []Fault{Cluster, Isolate},
	vacancy: afterRecovery,
	happens: lone((*story).chief, (*story).isolated),
}, {
	id: "follower-cut", title: "the server of the leader is isolated",
	text:    "The server that the leading candidate is connected to, which does not lead the cluster, is cut off from the other servers and not from its clients, for longer than a session.",
	needs:   []Fault{Cluster, Isolate},
	vacancy: afterRecovery,
	happens: lone((*story).follower, (*story).isolated),
}, {
	id: "quorum", title: "the coordinator loses its quorum",
	text:    "A majority of the servers, the one that leads included, is paused for longer than a session, and later killed for as long. The leading candidate is connected to a server that is left, where one of them is. Every term from before ends by its deadline. The one that led comes back last, when somebody leads at the others.",
	needs:   []Fault{Cluster, Deadlines},
	vacancy: afterRecovery,
	happens: func(s *story) {
		for _, fault := range []func(*story, int) func(){(*story).paused, (*story).killed} {
			first, n := s.chief(), s.servers()
			g := s.until(s.hangsOn(func(server int) bool { return (server-first+n)%n > n/2 }))
			if g == nil {
				g = s.leads()
			}
			elsewhere := s.elsewhere(first)
			var heals []func()
			for i := range n/2 + 1 {
				heals = append(heals, fault(s, (first+i)%n))
			}
			s.t.pass(s.lasts(), "longer than a session")
			s.ends(g, s.t.h.soon())
			for _, heal := range heals[1:] {
				heal()
			}
			if elsewhere { // a leader that went on with its old followers could be stuck: docs/zookeeper.md
				s.after(g)
			}
			heals[0]()
			s.after(g)
		}
	},
}}

// lone is a fault of one server, for longer than a session, where one can while a
// candidate leads that hangs on it. Somebody leads meanwhile, unless all candidates hang
// on that server.
func lone(which func(*story) int, fault func(*story, int) func()) func(*story) {
	return func(s *story) {
		i := which(s)
		s.until(s.hangsOn(func(server int) bool { return server == i }))
		elsewhere := s.elsewhere(i)
		heal := fault(s, i)
		s.t.pass(s.lasts(), "longer than a session")
		if elsewhere {
			s.leads()
		}
		heal()
		s.leads()
	}
}

// elsewhere reports whether a candidate hangs on another server than that one.
func (s *story) elsewhere(i int) bool {
	return slices.ContainsFunc(s.clients, func(c *client) bool { return s.t.h.Faults.Cluster.Of(c.raw) != i })
}

func (s *story) servers() int { return len(s.t.h.Faults.Cluster.Servers) }

// chief returns the server that leads the cluster.
func (s *story) chief() int {
	ctx, cancel := s.t.within(s.t.h.recovery())
	defer cancel()
	i, err := s.t.h.Faults.Cluster.Leader(ctx)
	if err != nil {
		s.t.fatalf("the harness does not know the coordinator's leader: %v", err)
	}
	return i
}

// follower returns the server of the leading candidate, after as many resignations as
// it takes until that is not the one that leads the cluster.
func (s *story) follower() int {
	chief := s.chief()
	g := s.until(s.hangsOn(func(server int) bool { return server != chief }))
	if g == nil {
		s.t.fatalf("all clients are connected to the server that leads the cluster; have the harness spread them")
	}
	return s.t.h.Faults.Cluster.Of(g.c.raw)
}

// hangsOn returns what reports whether the leading candidate hangs on a server as wanted.
func (s *story) hangsOn(wanted func(server int) bool) func(*reign) bool {
	return func(g *reign) bool { return wanted(s.t.h.Faults.Cluster.Of(g.c.raw)) }
}

// killed kills a server. What it returns starts it again.
func (s *story) killed(i int) (start func()) {
	server := s.t.h.Faults.Cluster.Servers[i]
	return s.serverFault(i, "killed", server.Kill, func() error { return server.Start(s.t.ctx) })
}

// paused stops a server. What it returns lets it go on.
func (s *story) paused(i int) (resume func()) {
	server := s.t.h.Faults.Cluster.Servers[i]
	return s.serverFault(i, "paused", server.Pause, server.Resume)
}

// isolated cuts a server off from the others. What it returns heals that.
func (s *story) isolated(i int) (heal func()) {
	var undo func()
	return s.serverFault(i, "isolated", func() (err error) {
		undo, err = s.t.h.Faults.Cluster.Servers[i].Isolate()
		return err
	}, func() error {
		undo()
		return nil
	})
}

func (s *story) serverFault(i int, kind string, fault, undo func() error) func() {
	kind = fmt.Sprintf("server %d %s", i, kind)
	over := s.t.strikes("", kind, kind)
	if err := s.t.aside(fault); err != nil {
		s.t.fatalf("%s: the harness failed: %v", kind, err)
	}
	var failed error
	heal := s.t.healing("", over, func() { failed = undo() })
	return sync.OnceFunc(func() {
		heal()
		if failed != nil {
			s.t.fatalf("the end of %q: the harness failed: %v", kind, failed)
		}
	})
}
