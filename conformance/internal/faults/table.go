package faults

import (
	"time"

	"github.com/succession-dev/succession/conformance/internal/engine"
	"github.com/succession-dev/succession/internal/history"
)

// A row of the table is one rule. It says what happens in the middle of its scenario.
type row struct {
	id, title, text string
	needs           []engine.Fault
	process         bool // one of the candidates is a process of its own
	happens         func(s *scenario)
	vacancy         func(*engine.Trial) time.Duration // how long nobody may lead while a candidate could
	notice          func(*engine.Trial) time.Duration // how late the unforeseen end of a term may be noticed; nil is 0
	forgives        []history.Rule
}

// outage bounds the time without a leader if no answers reach the leader's client. Its requests
// may go on until its deadline, and keep its session alive.
func outage(t *engine.Trial) time.Duration { return t.TTL + t.Crash() }

var (
	soon          = (*engine.Trial).Soon
	afterCrash    = (*engine.Trial).Crash
	afterRecovery = (*engine.Trial).Recovery
)

func afterRecheck(t *engine.Trial) time.Duration { return t.Recheck() + t.Soon() }

// network returns a fault between the leader's client and the coordinator that outlasts the
// session. The old leader must learn of its loss, and another must lead.
func network(fault func(*scenario, *engine.Client) (heal func())) func(*scenario) {
	return func(s *scenario) {
		g := s.leads()
		heal := fault(s, g.Client)
		s.Pass(s.lasts(), "longer than a session")
		s.Ends(g, s.Soon())
		heal()
		s.after(g)
	}
}

// lasting fills in a row whose fault hits the leader's client with f, and outlasts its session.
func lasting(f engine.Fault, r row) row {
	r.needs, r.vacancy = []engine.Fault{f, engine.Deadlines}, outage
	r.happens = network(func(_ *scenario, c *engine.Client) func() { return c.Inject(f) })
	return r
}

var clientFaults = []row{
	lasting(engine.Cut, row{id: "cut", title: "the leader is cut off",
		text: "No traffic passes between the leader and the coordinator, for longer than a session."}),
	lasting(engine.Mute, row{id: "mute", title: "the leader is not heard",
		text: "Nothing passes from the leader to the coordinator, for longer than a session; what the coordinator sends arrives."}),
	lasting(engine.Deafen, row{id: "deaf", title: "the leader hears nothing",
		text: "Nothing passes from the coordinator to the leader, for longer than a session; what the leader sends arrives and takes effect."}),
	{
		id: "late", title: "answers are late, and then the leader is cut off",
		text:  "Answers to the leader are held back for six tenths of TTL; as soon as they have arrived it is cut off, for longer than a session. Its deadline counts from when it asked, not from when it was answered.",
		needs: []engine.Fault{engine.Deafen, engine.Cut, engine.Deadlines}, vacancy: outage,
		happens: network(func(s *scenario, c *engine.Client) func() {
			heal := c.Inject(engine.Deafen)
			s.Pass(s.TTL*6/10, "while answers are held back")
			heal()
			s.Pass(s.TTL/50, "in which they arrive")
			return c.Inject(engine.Cut)
		}),
	},
	lasting(engine.Sever, row{id: "severed", title: "the leader's connections are reset",
		text: "Each connection of the leader is reset as soon as it carries a request, for longer than a session."}),
	lasting(engine.Hide, row{id: "hidden", title: "the coordinator's address is gone",
		text: "The leader's connections break and it can make no other, for longer than a session."}),
	{
		id: "killed-candidate", title: "the leader crashes",
		text:  "The leader's client vanishes. Another client takes the place of the dead one in the candidates.",
		needs: []engine.Fault{engine.Kill}, vacancy: afterCrash, happens: func(s *scenario) {
			g := s.leads()
			g.Client.Inject(engine.Kill)
			s.joins()
			s.after(g)
		},
	}, {
		id: "compacted", title: "the log is compacted while a waiter is cut off",
		text:  "The next in line is cut off for a third of TTL, with a Gone of its own that waits for the leader. Meanwhile the leader resigns, and the coordinator forgets the history of its log. That Gone returns nil soon after the waiter is healed.",
		needs: []engine.Fault{engine.Cut, engine.Compact}, vacancy: afterRecovery, happens: func(s *scenario) {
			g := s.leads()
			_, m := s.inLine(0)
			next, _ := s.inLine(1)
			gone := next.Gone(m) // no re-check wakes it, unlike a candidate
			s.Pass(s.TTL/20, "in which the wait begins")
			heal := next.Inject(engine.Cut)
			g.Resign()
			s.Pass(s.TTL/6, "in which the log moves on")
			s.Inject(engine.Compact)
			s.Pass(s.TTL/6, "until the waiter is healed")
			heal()
			gone.Returns(s.Soon())
			s.after(g)
		},
	},
}

var operatorFaults = []row{{
	id: "expired", title: "an operator ends the leader's session",
	text:  "The coordinator ends the session of a healthy leader. The leader finds out soon, and another leads soon.",
	needs: []engine.Fault{engine.Expire}, vacancy: soon, notice: soon, happens: func(s *scenario) {
		g := s.leads()
		g.Client.Inject(engine.Expire)
		s.Ends(g, s.Soon())
		s.after(g)
	},
}, {
	id: "leader-removed", title: "an operator removes the leader",
	text:  "An operator deletes the leader's member; the leader finds out soon.",
	needs: []engine.Fault{engine.Remove}, vacancy: soon, notice: soon, happens: func(s *scenario) {
		g := s.leads()
		_, m := s.inLine(0)
		s.Remove(m)
		s.after(g)
		s.Ends(g, s.Soon())
	},
}, {
	id: "predecessor-removed", title: "an operator removes the one in front of a waiter",
	text:  "An operator deletes the second member in line. The third waits on, the leader leads on, and the second stands in line again after its slow re-check.",
	needs: []engine.Fault{engine.Remove}, vacancy: soon, happens: func(s *scenario) {
		g := s.leads()
		_, m := s.inLine(1)
		s.Remove(m)
		s.Always(s.TTL/4, "the leader was disturbed by the removal of the one behind it", func() bool { return !s.Over(g) })
	},
}, {
	id: "dropped", title: "an operator deletes the election",
	text:  "An operator deletes all that belongs to the election, its path included. The leader finds out soon, and the waiters by their slow re-check at the latest.",
	needs: []engine.Fault{engine.Drop}, vacancy: afterRecheck, notice: soon, happens: func(s *scenario) {
		g := s.leads()
		s.Drop(s.Name)
		s.Ends(g, s.Soon())
		s.after(g)
	},
}}

// processFaults hit a leader in a process of its own.
var processFaults = []row{{
	id: "killed-process", title: "the leader's process is killed",
	text:  "The leader is a process of its own, and is killed (SIGKILL).",
	needs: []engine.Fault{engine.Process}, process: true, vacancy: afterCrash, happens: func(s *scenario) {
		g := s.until(s.isProcess)
		s.process.Kill(g)
		s.after(g)
	},
}, {
	id: "stopped", title: "the leader's process is stopped",
	text:  "The leader is a process of its own, is stopped (SIGSTOP) for longer than its session, and continued (SIGCONT). The first time that it asks, it finds out that its term is over. Where sessions have no time, it leads on, and nobody else has led meanwhile.",
	needs: []engine.Fault{engine.Process}, process: true, vacancy: afterCrash, happens: func(s *scenario) {
		g := s.until(s.isProcess)
		terms := s.Count()
		resume := s.process.Stop()
		if !s.Can(engine.Deadlines) {
			s.Always(s.lasts(), "another leads while the leader, whose place nobody else can take, is stopped", func() bool { return s.Count() == terms })
			resume()
			s.Always(s.TTL/4, "the leader, whose place nobody else can take, was disturbed by being stopped", func() bool { return !s.Over(g) })
			return
		}
		s.Pass(s.lasts(), "longer than a session")
		s.after(g)
		resume()
		s.Ends(g, s.Soon())
	},
}, {
	id: "suspended", title: "the leader's machine is suspended",
	text:  "The leader is a process of its own, and its clock that counts suspension moves ahead by two TTL, as if the machine had been suspended. Its term ends soon; on Linux the term's context says so, before anybody asks.",
	needs: []engine.Fault{engine.Process, engine.Deadlines}, process: true, vacancy: afterCrash,
	happens: func(s *scenario) {
		g := s.until(s.isProcess)
		s.process.Suspend(2 * s.TTL)
		s.Ends(g, s.Soon())
		s.after(g)
	},
}}

var coordinatorFaults = []row{{
	id: "paused", title: "the coordinator stands still",
	text:  "The coordinator is paused for longer than a session. Every term from before ends by its deadline.",
	needs: []engine.Fault{engine.Pause, engine.Deadlines}, vacancy: afterRecovery, happens: func(s *scenario) {
		g := s.leads()
		resume := s.Inject(engine.Pause)
		s.Pass(s.lasts(), "longer than a session")
		s.Ends(g, s.Soon())
		resume()
		s.after(g)
	},
}, {
	id: "restarted", title: "the coordinator is restarted",
	text:  "The coordinator is restarted with its data. Somebody leads after recovery.",
	needs: []engine.Fault{engine.Restart}, vacancy: afterRecovery, happens: func(s *scenario) {
		s.leads()
		s.Inject(engine.Restart)
		s.leads()
	},
}, {
	id: "rewound", title: "the coordinator is restored from a snapshot",
	text: "The coordinator's state is remembered, all lead in turn, and the state is restored with its log index. After recovery every candidate has been told ErrReset, or stands at a position later than all before, as the log has caught up. " +
		"As the message of ErrReset says, the fence is then raised above the last token, and new clients take the place of those that were told.",
	needs: []engine.Fault{engine.Rewind, engine.Records}, vacancy: afterRecovery, notice: soon,
	forgives: []history.Rule{history.Order, history.Vacancy}, // positions begin again, and nobody can lead until the operator has acted
	happens:  rewound,
}, {
	id: "clock", title: "the coordinator's wall clock jumps",
	text:  "The wall clock of the coordinator is set forth by an hour for a TTL, and then back by an hour for a TTL. The leader leads on, as sessions are measured and not dated.",
	needs: []engine.Fault{engine.Clock}, vacancy: afterRecovery, happens: func(s *scenario) {
		g := s.leads()
		for _, d := range []time.Duration{time.Hour, -time.Hour} {
			restore := s.Shift(d)
			s.Always(s.TTL, "the leader was disturbed by the wall clock of the coordinator", func() bool { return !s.Over(g) })
			restore()
		}
		s.Always(s.TTL/4, "the leader was disturbed when the wall clock was set right", func() bool { return !s.Over(g) })
	},
}}
