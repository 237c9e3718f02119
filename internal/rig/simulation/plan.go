package simulation

import (
	"fmt"
	"strings"
	"time"
)

// A Plan is one schedule, as data: who there is, and what happens to them when. It
// can be printed, kept as JSON, and run again.
type Plan struct {
	Slack     time.Duration `json:"slack"` // of the coordinators; see memory.Options
	Clients   int           `json:"clients"`
	Elections int           `json:"elections"`
	Steps     []Step        `json:"steps"`
	Seed      uint64        `json:"seed,omitempty"`   // of what is random in package elect
	Margin    time.Duration `json:"margin,omitempty"` // of package elect; 0 is its default

	// Early is how much shorter a TTL of the coordinator's clock is than one of the
	// client's, by the client's slot; longer below 0. None is 0.
	Early []time.Duration `json:"early,omitempty"`

	// Of a plan in which elections move from one coordinator to another.
	Migrate  bool   `json:"migrate,omitempty"`
	Modes    []Mode `json:"modes,omitempty"`     // by the client's slot; none is Old
	Begun    bool   `json:"begun,omitempty"`     // each migration has begun before the first step
	OldAhead bool   `json:"old_ahead,omitempty"` // the old coordinator has counted further than the new one

	// Of a plan in which candidates say of themselves who is to lead.
	Choice bool `json:"choice,omitempty"`
}

// A Mode is which coordinators a process knows.
type Mode string

// The modes. Where there is one coordinator, all processes are Old.
const (
	Old  Mode = "old"
	Both Mode = "both" // by the composite of package migrate
	New  Mode = "new"
)

// Modes are all modes.
var Modes = []Mode{Old, Both, New}

// margin returns the margin of each term.
func (p *Plan) margin() time.Duration {
	if p.Margin == 0 {
		return TTL / 10
	}
	return p.Margin
}

// early returns Early of a slot.
func (p *Plan) early(slot int) time.Duration {
	if slot < len(p.Early) {
		return p.Early[slot]
	}
	return 0
}

// mode returns the mode in which the process of a slot begins.
func (p *Plan) mode(slot int) Mode {
	if p.Migrate && slot < len(p.Modes) {
		return p.Modes[slot]
	}
	return Old
}

// A Step is one thing that happens, and how long the world then goes on by itself.
type Step struct {
	Do Act `json:"do"`
	// Client, Election and Nth say to whom, each modulo how many there are, so that
	// a step that shrinks, or that follows others, still means something.
	Client   int `json:"client,omitempty"`
	Election int `json:"election,omitempty"`
	Nth      int `json:"nth,omitempty"`
	Side     int `json:"side,omitempty"` // which coordinator

	Then time.Duration `json:"then"`

	// Of Join: how the candidate behaves.
	Campaign bool          `json:"campaign,omitempty"` // it calls Campaign, else Run
	Hold     time.Duration `json:"hold,omitempty"`     // it resigns after so long; 0 is never
	Linger   time.Duration `json:"linger,omitempty"`   // its work goes on so long after the end of its term
	Ack      bool          `json:"ack,omitempty"`      // it acknowledges

	// Of Join in a plan with Choice.
	Priority int    `json:"priority,omitempty"`
	Site     string `json:"site,omitempty"`
	Unready  bool   `json:"unready,omitempty"` // it is not ready at first

	// Of Roll.
	Mode Mode `json:"mode,omitempty"`

	// Of the steps of a migration: when the operator gives up.
	Patience time.Duration `json:"patience,omitempty"`

	// Of Delay, of Lag (Answer alone), and of the operator of a migration.
	Request time.Duration `json:"request,omitempty"`
	Answer  time.Duration `json:"answer,omitempty"`
}

// An Act is what a step does.
type Act string

// The acts. Those without an object in their comment are done to Client.
const (
	Join        Act = "join"         // a candidate of Client begins in Election
	Leave       Act = "leave"        // the Nth candidate stops
	Observe     Act = "observe"      // an observer of Election begins
	Put         Act = "put"          // all leaders, and those that were, write under guard
	Ask         Act = "ask"          // an operator asks the leader of Election to resign
	Fence       Act = "fence"        // an operator raises the fence of Election
	Remove      Act = "remove"       // an operator removes the Nth member of Election
	Drop        Act = "drop"         // an operator deletes the path of Election
	Expire      Act = "expire"       // an operator ends the session
	Crash       Act = "crash"        // the process dies, and a new one comes in its place
	Close       Act = "close"        // the backend is closed under its candidates; a new one comes
	Cut         Act = "cut"          // nothing passes
	CutRequests Act = "cut requests" // no request passes
	CutAnswers  Act = "cut answers"  // no answer passes
	Heal        Act = "heal"         // undoes the cuts
	Delay       Act = "delay"        // messages take Request and Answer
	Lag         Act = "lag"          // reads are answered by a server that lags behind by Answer
	Disconnect  Act = "disconnect"   // the connection breaks
	LoseRequest Act = "lose request" // the connection breaks before the next call is run
	LoseAnswer  Act = "lose answer"  // the connection breaks before the next call is answered
	LoseJoin    Act = "lose join"    // the same, for the next Join
	LosePut     Act = "lose put"     // the same, for the next Put
	Pause       Act = "pause"        // the coordinator stands still
	Resume      Act = "resume"       // the coordinator goes on
	Restart     Act = "restart"      // the coordinator restarts
	Wait        Act = "wait"         // nothing

	Seal     Act = "seal"     // the leaders of Election pin their members and seal it
	Gate     Act = "gate"     // an operator pins a member at the end of the line of Election
	Open     Act = "open"     // an operator takes gates and the seal of Election away
	Snapshot Act = "snapshot" // an operator remembers what the coordinator has
	Rewind   Act = "rewind"   // the coordinator goes back to that; where there is none, to nothing
	Recover  Act = "recover"  // an operator does what is to be done after Rewind

	Roll    Act = "roll"    // the process is restarted in Mode, with its candidates
	Begin   Act = "begin"   // an operator takes a step of the migration of Election
	Cutover Act = "cutover" // another one
	Abort   Act = "abort"   // another one
	Finish  Act = "finish"  // another one

	NotReady Act = "not ready" // the Nth candidate is not ready any more
	Ready    Act = "ready"     // the Nth candidate is ready again
	Wish     Act = "wish"      // an operator asks the leader of Election to resign in favour of the Nth behind it
	Halt     Act = "halt"      // an operator pauses Election
	Reopen   Act = "reopen"    // an operator resumes Election
)

// Acts are the acts where there is one coordinator, the simplest first; twice what is to
// happen more often.
var Acts = []Act{
	Wait, Join, Join, Join, Join, Leave, Put, Put, Observe, Heal, Heal, Cut, CutRequests, CutAnswers, Crash,
	Expire, Remove, Delay, Delay, Disconnect, LoseRequest, LoseAnswer, LoseJoin, LosePut,
	Ask, Fence, Drop, Close, Pause, Resume, Restart, Lag,
	Seal, Gate, Open, Open, Snapshot, Rewind, Recover,
}

// Moves are the acts where elections move from one coordinator to another.
var Moves = []Act{
	Wait, Join, Join, Join, Join, Leave, Put, Put, Observe, Heal, Heal, Cut, CutRequests, CutAnswers, Crash,
	Delay, Delay, Disconnect, LoseRequest, LoseAnswer, LoseJoin, LosePut, Ask, Fence, Close, Pause, Resume, Restart, Lag,
	Roll, Roll, Roll, Begin, Begin, Cutover, Cutover, Cutover, Cutover, Abort, Finish,
}

// Choices are the acts where candidates say who is to lead.
var Choices = []Act{
	Wait, Join, Join, Join, Join, Leave, Put, Observe, Heal, Heal, Cut, CutRequests, CutAnswers, Crash,
	Expire, Remove, Delay, Disconnect, LoseRequest, LoseAnswer, LoseJoin, LosePut,
	Ask, Fence, Drop, Close, Pause, Resume, Restart, Lag,
	NotReady, NotReady, NotReady, Ready, Ready, Wish, Wish, Halt, Reopen,
}

func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d clients, %d elections, slack %v, margin %v, early %v, seed %d\n", p.Clients, p.Elections, p.Slack, p.margin(), p.Early, p.Seed)
	if p.Migrate {
		fmt.Fprintf(&b, "migrations: modes %v, begun %v, old ahead %v\n", p.Modes, p.Begun, p.OldAhead)
	}
	if p.Choice {
		b.WriteString("candidates have priorities, sites, and are ready at times\n")
	}
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "%3d  %s\n", i, s)
	}
	return b.String()
}

func (s Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s client %d election %d nth %d", s.Do, s.Client, s.Election, s.Nth)
	if s.Do == Join {
		fmt.Fprintf(&b, " campaign %v hold %v linger %v ack %v", s.Campaign, s.Hold, s.Linger, s.Ack)
		if s.Priority != 0 || s.Site != "" || s.Unready {
			fmt.Fprintf(&b, " priority %d site %q unready %v", s.Priority, s.Site, s.Unready)
		}
	}
	switch s.Do {
	case Delay:
		fmt.Fprintf(&b, " side %d request %v answer %v", s.Side, s.Request, s.Answer)
	case Lag:
		fmt.Fprintf(&b, " side %d behind by %v", s.Side, s.Answer)
	case Begin, Cutover, Abort, Finish:
		fmt.Fprintf(&b, " request %v answer %v patience %v", s.Request, s.Answer, s.Patience)
	case Roll:
		fmt.Fprintf(&b, " mode %v", s.Mode)
	default:
		fmt.Fprintf(&b, " side %d", s.Side)
	}
	fmt.Fprintf(&b, ", then %v", s.Then)
	return b.String()
}
