package faults

import (
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// clusterFaults hit single servers of a cluster. Unless the rule says otherwise, the servers
// that are left are a quorum. So somebody leads meanwhile, if a candidate is connected to one
// of them.
var clusterFaults = []row{
	{
		id: "rolling", title: "each server is restarted in turn",
		text:  "Each server of the cluster is killed and started with its data, one after the other; in between somebody leads.",
		needs: []engine.Fault{engine.Cluster}, vacancy: afterRecovery, happens: func(s *scenario) {
			for i := range s.Faults.Servers() {
				s.InjectServer(engine.Kill, i)()
				s.leads()
			}
		},
	},
	lone((*scenario).clusterLeader, engine.Kill, row{id: "leader-killed", title: "the coordinator's own leader crashes",
		text: "The server that leads the cluster is killed, and started after longer than a session. The leading candidate is connected to it, where one of them is."}),
	lone((*scenario).clusterLeader, engine.Pause, row{id: "leader-paused", title: "the coordinator's own leader stands still",
		text: "The server that leads the cluster is paused for longer than a session. The leading candidate is connected to it, where one of them is."}),
	lone((*scenario).clusterLeader, engine.Isolate, row{id: "leader-cut", title: "the coordinator's own leader is isolated",
		text: "The server that leads the cluster is cut off from the other servers, not from its clients, for longer than a session. The leading candidate is connected to it, where one of them is."}),
	lone((*scenario).follower, engine.Isolate, row{id: "follower-cut", title: "the server of the leader is isolated",
		text: "The server that the leading candidate is connected to, which does not lead the cluster, is cut off from the other servers and not from its clients, for longer than a session."}),
	{
		id: "server-silent", title: "a server stands still, and the clients know the others",
		text: "Three more candidates know all servers, and one of them leads. Each server but the one that leads the cluster is paused for longer than a session, one after the other. " +
			"The term goes on, and none of the three sessions ends.",
		needs: []engine.Fault{engine.Cluster, engine.Failover}, vacancy: afterRecovery, happens: outlives,
	},
	{
		id: "quorum", title: "the coordinator loses its quorum",
		text:  "A majority of the servers, the one that leads included, is paused for longer than a session, and later killed for as long. The leading candidate is connected to a server that is left, where one of them is. Every term from before ends by its deadline. The one that led comes back last, when somebody leads at the others.",
		needs: []engine.Fault{engine.Cluster, engine.Deadlines}, vacancy: afterRecovery,
		happens: func(s *scenario) {
			for _, fault := range []engine.Fault{engine.Pause, engine.Kill} {
				first, n := s.clusterLeader(), s.Faults.Servers()
				g := s.until(s.hangsOn(func(server int) bool { return (server-first+n)%n > n/2 }))
				if g == nil {
					g = s.leads()
				}
				elsewhere := s.elsewhere(first)
				var heals []func()
				for i := range n/2 + 1 {
					heals = append(heals, s.InjectServer(fault, (first+i)%n))
				}
				s.Pass(s.lasts(), "longer than a session")
				s.Ends(g, s.Soon())
				for _, heal := range heals[1:] {
					heal()
				}
				if elsewhere { // the leader comes back last: with its old followers it could be stuck, see docs/zookeeper.md
					s.after(g)
				}
				heals[0]()
				s.after(g)
			}
		},
	},
}

// outlives pauses one server after the other, and has clients that know all servers live on. There
// are several of them, as it is not known which server each talks to.
func outlives(s *scenario) {
	var know []*engine.Client
	for range 3 {
		c := s.FailoverClient()
		s.enters(c)
		know = append(know, c)
	}
	knows := func(g *engine.Term) bool { return slices.Contains(know, g.Client) }
	for i := range s.Faults.Servers() {
		if i == s.clusterLeader() {
			continue
		}
		g := s.until(knows)
		if g == nil {
			s.Fatalf("nobody of those that know all servers has led")
		}
		sessions := make(map[*engine.Client]backend.Session)
		for _, c := range know {
			sessions[c] = c.Live()
		}
		resume := s.InjectServer(engine.Pause, i)
		s.Always(s.lasts(), "the term did not outlive a server that stands still, though its client knows the others", func() bool { return !s.Over(g) })
		for c, session := range sessions {
			if err := session.Err(); err != nil {
				s.Fatalf("%s knows the other servers, and its session has ended: %v", c.Name, err)
			}
		}
		resume()
		s.everyone("after a server stood still") // those too that know this server alone: it serves again
	}
}

// lone fills in a row whose fault hits one server, for longer than a session. If a candidate is
// connected to that server, it leads when the fault comes. Somebody leads meanwhile, unless all
// candidates are connected to that server.
func lone(which func(*scenario) int, fault engine.Fault, r row) row {
	r.needs, r.vacancy = []engine.Fault{engine.Cluster}, afterRecovery
	if fault == engine.Isolate {
		r.needs = append(r.needs, fault)
	}
	r.happens = func(s *scenario) {
		i := which(s)
		s.until(s.hangsOn(func(server int) bool { return server == i }))
		elsewhere := s.elsewhere(i)
		heal := s.InjectServer(fault, i)
		s.Pass(s.lasts(), "longer than a session")
		if elsewhere {
			s.leads()
		}
		heal()
		s.leads()
	}
	return r
}

// elsewhere reports whether a candidate is connected to another server.
func (s *scenario) elsewhere(i int) bool {
	return slices.ContainsFunc(s.clients, func(c *engine.Client) bool { return c.Server() != i })
}

// clusterLeader returns the index of the server that leads the cluster.
func (s *scenario) clusterLeader() int {
	ctx, cancel := s.Within(s.Recovery())
	defer cancel()
	i, err := s.Faults.Leader(ctx)
	if err != nil {
		s.Fatalf("the harness does not know the coordinator's leader: %v", err)
	}
	return i
}

// follower has candidates resign until one leads that is connected to a server which does not
// lead the cluster. It returns the index of that server.
func (s *scenario) follower() int {
	clusterLeader := s.clusterLeader()
	g := s.until(s.hangsOn(func(server int) bool { return server != clusterLeader }))
	if g == nil {
		s.Fatalf("all clients are connected to the server that leads the cluster; have the harness spread them")
	}
	return g.Client.Server()
}

// hangsOn returns a func that reports whether wanted is true of the server to which the leading
// candidate is connected.
func (s *scenario) hangsOn(wanted func(server int) bool) func(*engine.Term) bool {
	return func(g *engine.Term) bool { return wanted(g.Client.Server()) }
}
