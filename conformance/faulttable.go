package conformance

import (
	"time"

	"github.com/succession-dev/succession/internal/history"
)

// A disturbance is a row of the table of faults: what happens in the middle of a
// story.
type disturbance struct {
	id, title, text string
	needs           []Fault
	process         bool // one of the candidates is a process of its own
	happens         func(s *story)
	vacancy         func(*trial) time.Duration // how long nobody may lead while a candidate could
	notice          func(*trial) time.Duration // how late an end may be noticed that nobody foresees; nil is 0
	forgives        []history.Rule
}

// outage bounds the time without a leader where the leader's client cannot be reached
// by answers, while its requests go on until its deadline.
func outage(t *trial) time.Duration { return t.h.TTL + t.h.crash() }

func afterRecovery(t *trial) time.Duration { return t.h.recovery() }

func afterRecheck(t *trial) time.Duration { return t.h.recheck() + t.h.soon() }

// toldOfAll is the rest of the text of all rules of the group.
const toldOfAll = " Five candidates lead in turn before that and after it, and the history is judged."

// faultRules makes rules of the table.
func faultRules() []Rule {
	var out []Rule
	for _, table := range [][]disturbance{clientFaults, operatorFaults, processFaults, coordinatorFaults, clusterFaults} {
		for _, d := range table {
			out = append(out, Rule{ID: "Fault." + d.id, Title: d.title, Text: d.text + toldOfAll, Needs: d.needs, check: tells(d)})
		}
	}
	return out
}

// network is a fault between the leader's client and the coordinator that outlasts the
// session: another leads after it, and the old leader has learnt of its loss.
func network(fault func(*client) (heal func())) func(*story) {
	return func(s *story) {
		g := s.leads()
		heal := fault(g.c)
		s.t.pass(s.lasts(), "longer than a session")
		s.ends(g, s.t.h.soon())
		heal()
		s.after(g)
	}
}

var clientFaults = []disturbance{{
	id: "cut", title: "the leader is cut off",
	text:    "No traffic passes between the leader and the coordinator, for longer than a session.",
	needs:   []Fault{Cut, Deadlines},
	happens: network((*client).cut), vacancy: outage,
}, {
	id: "mute", title: "the leader is not heard",
	text:    "Nothing passes from the leader to the coordinator, for longer than a session; what the coordinator sends arrives.",
	needs:   []Fault{Mute, Deadlines},
	happens: network((*client).mute), vacancy: outage,
}, {
	id: "deaf", title: "the leader hears nothing",
	text:    "Nothing passes from the coordinator to the leader, for longer than a session; what the leader sends arrives and takes effect.",
	needs:   []Fault{Deafen, Deadlines},
	happens: network((*client).deafen), vacancy: outage,
}, {
	id: "late", title: "answers are late, and then the leader is cut off",
	text:    "Answers to the leader are held back for six tenths of TTL; as soon as they have arrived it is cut off, for longer than a session. Its deadline counts from when it asked, not from when it was answered.",
	needs:   []Fault{Deafen, Cut, Deadlines},
	vacancy: outage,
	happens: network(func(c *client) func() {
		heal := c.deafen()
		c.t.pass(c.t.h.TTL*6/10, "while answers are held back")
		heal()
		c.t.pass(c.t.h.TTL/50, "in which they arrive")
		return c.cut()
	}),
}, {
	id: "severed", title: "the leader's connections are reset",
	text:    "Each connection of the leader is reset as soon as it carries a request, for longer than a session.",
	needs:   []Fault{Sever, Deadlines},
	happens: network((*client).sever), vacancy: outage,
}, {
	id: "hidden", title: "the coordinator's address is gone",
	text:    "The leader's connections break and it can make no other, for longer than a session.",
	needs:   []Fault{Hide, Deadlines},
	happens: network((*client).hide), vacancy: outage,
}, {
	id: "killed-candidate", title: "the leader crashes",
	text:    "The leader's client vanishes. Another client takes the place of the dead one in the cast.",
	needs:   []Fault{Kill},
	vacancy: afterCrash,
	happens: func(s *story) {
		g := s.leads()
		g.c.kill()
		s.joins()
		s.after(g)
	},
}, {
	id: "compacted", title: "the log is compacted while a waiter is cut off",
	text:    "The next in line is cut off for a third of TTL, with a Gone of its own that waits for the leader. Meanwhile the leader resigns, and the coordinator forgets the history of its log. That Gone returns nil soon after the waiter is healed.",
	needs:   []Fault{Cut, Compact},
	vacancy: afterRecovery,
	happens: func(s *story) {
		g := s.leads()
		_, m := s.inLine(0)
		next, _ := s.inLine(1)
		gone := next.going(m) // no re-check wakes it, as one does a candidate
		s.t.pass(s.t.h.TTL/20, "in which the wait begins")
		heal := next.cut()
		g.resign()
		s.t.pass(s.t.h.TTL/6, "in which the log moves on")
		s.t.compact()
		s.t.pass(s.t.h.TTL/6, "until the waiter is healed")
		heal()
		if err := await(s.t, gone, s.t.h.soon(), "Gone of the leader has not returned after the waiter was healed"); err != nil {
			s.t.fatalf("Gone of the leader returned %v; want nil", err)
		}
		s.after(g)
	},
}}

var operatorFaults = []disturbance{{
	id: "expired", title: "an operator ends the leader's session",
	text:    "The coordinator ends the session of a healthy leader. The leader finds out soon, and another leads soon.",
	needs:   []Fault{Expire},
	vacancy: soon, notice: soon,
	happens: func(s *story) {
		g := s.leads()
		g.c.expire()
		s.ends(g, s.t.h.soon())
		s.after(g)
	},
}, {
	id: "leader-removed", title: "an operator removes the leader",
	text:    "An operator deletes the leader's member; the leader finds out soon.",
	needs:   []Fault{Remove},
	vacancy: soon, notice: soon,
	happens: func(s *story) {
		g := s.leads()
		_, m := s.inLine(0)
		s.t.remove(m)
		s.after(g)
		s.ends(g, s.t.h.soon())
	},
}, {
	id: "predecessor-removed", title: "an operator removes the one in front of a waiter",
	text:    "An operator deletes the second member in line. The third waits on, the leader leads on, and the second stands in line again after its slow re-check.",
	needs:   []Fault{Remove},
	vacancy: soon,
	happens: func(s *story) {
		g := s.leads()
		_, m := s.inLine(1)
		s.t.remove(m)
		s.t.steady(s.t.h.TTL/4, "the leader was disturbed by the removal of the one behind it", func() bool { return !s.over(g) })
	},
}, {
	id: "dropped", title: "an operator deletes the election",
	text:    "An operator deletes all that belongs to the election, its path included. The leader finds out soon, and the waiters by their slow re-check at the latest.",
	needs:   []Fault{Drop},
	vacancy: afterRecheck, notice: soon,
	happens: func(s *story) {
		g := s.leads()
		s.t.drop()
		s.ends(g, s.t.h.soon())
		s.after(g)
	},
}}

// processFaults hit a leader that is a process of its own.
var processFaults = []disturbance{{
	id: "killed-process", title: "the leader's process is killed",
	text:    "The leader is a process of its own, and is killed (SIGKILL).",
	needs:   []Fault{Process},
	process: true,
	vacancy: afterCrash,
	happens: func(s *story) {
		g := s.until(s.isProcess)
		s.process.kill(g)
		s.after(g)
	},
}, {
	id: "stopped", title: "the leader's process is stopped",
	text:    "The leader is a process of its own, is stopped (SIGSTOP) for longer than its session, and continued (SIGCONT). The first time that it asks, it finds out that its term is over. Where sessions have no time, it leads on, and nobody else has led meanwhile.",
	needs:   []Fault{Process},
	process: true,
	vacancy: afterCrash,
	happens: func(s *story) {
		g := s.until(s.isProcess)
		terms := s.count()
		resume := s.process.stop()
		if !s.t.h.can(Deadlines) {
			s.t.steady(s.lasts(), "another leads while the leader, whose place nobody else can take, is stopped", func() bool { return s.count() == terms })
			resume()
			s.t.steady(s.t.h.TTL/4, "the leader, whose place nobody else can take, was disturbed by being stopped", func() bool { return !s.over(g) })
			return
		}
		s.t.pass(s.lasts(), "longer than a session")
		s.after(g)
		resume()
		s.ends(g, s.t.h.soon())
	},
}, {
	id: "suspended", title: "the leader's machine is suspended",
	text:    "The leader is a process of its own, and its clock that counts suspension moves ahead by two TTL, as if the machine had been suspended. Its term ends soon; on Linux the term's context says so, before anybody asks.",
	needs:   []Fault{Process, Deadlines},
	process: true,
	vacancy: afterCrash,
	happens: func(s *story) {
		g := s.until(s.isProcess)
		s.process.suspend(2 * s.t.h.TTL)
		s.ends(g, s.t.h.soon())
		s.after(g)
	},
}}

var coordinatorFaults = []disturbance{{
	id: "paused", title: "the coordinator stands still",
	text:    "The coordinator is paused for longer than a session. Every term from before ends by its deadline.",
	needs:   []Fault{Pause, Deadlines},
	vacancy: afterRecovery,
	happens: func(s *story) {
		g := s.leads()
		resume := s.t.pause()
		s.t.pass(s.lasts(), "longer than a session")
		s.ends(g, s.t.h.soon())
		resume()
		s.after(g)
	},
}, {
	id: "restarted", title: "the coordinator is restarted",
	text:    "The coordinator is restarted with its data. Somebody leads after recovery.",
	needs:   []Fault{Restart},
	vacancy: afterRecovery,
	happens: func(s *story) {
		s.leads()
		s.t.restart()
		s.leads()
	},
}, {
	id: "rewound", title: "the coordinator is restored from a snapshot",
	text: "The coordinator's state is remembered, all lead in turn, and the state is restored with its log index. After recovery every candidate has been told ErrReset, or stands at a position later than all before, as the log has caught up. " +
		"As the message of ErrReset says, the fence is then raised above the last token, and new clients take the place of those that were told.",
	needs:    []Fault{Rewind, Records},
	vacancy:  afterRecovery,
	notice:   soon,
	forgives: []history.Rule{history.Order, history.Vacancy}, // positions begin again, and nobody can lead until the operator has acted
	happens:  rewound,
}, {
	id: "clock", title: "the coordinator's wall clock jumps",
	text:    "The wall clock of the coordinator is set forth by an hour for a TTL, and then back by an hour for a TTL. The leader leads on, as sessions are measured and not dated.",
	needs:   []Fault{Clock},
	vacancy: afterRecovery,
	happens: func(s *story) {
		g := s.leads()
		for _, d := range []time.Duration{time.Hour, -time.Hour} {
			restore := s.t.shift(d)
			s.t.steady(s.t.h.TTL, "the leader was disturbed by the wall clock of the coordinator", func() bool { return !s.over(g) })
			restore()
		}
		s.t.steady(s.t.h.TTL/4, "the leader was disturbed when the wall clock was set right", func() bool { return !s.over(g) })
	},
}}
