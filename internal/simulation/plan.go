package simulation

import (
	"fmt"
	"strings"
	"time"
)

// A Plan is one schedule, as data: who there is, and what happens to them when. It
// can be printed, kept as JSON, and run again.
type Plan struct {
	Slack     time.Duration `json:"slack"` // of the coordinator; see memory.Options
	Clients   int           `json:"clients"`
	Elections int           `json:"elections"`
	Steps     []Step        `json:"steps"`
	Seed      uint64        `json:"seed,omitempty"` // of what is random in package elect
}

// A Step is one thing that happens, and how long the world then goes on by itself.
type Step struct {
	Do Act `json:"do"`
	// Client, Election and Nth say to whom, each modulo how many there are, so that
	// a step that shrinks, or that follows others, still means something.
	Client   int `json:"client,omitempty"`
	Election int `json:"election,omitempty"`
	Nth      int `json:"nth,omitempty"`

	Then time.Duration `json:"then"`

	// Of Join: how the candidate behaves.
	Campaign bool          `json:"campaign,omitempty"` // it calls Campaign, else Run
	Hold     time.Duration `json:"hold,omitempty"`     // it resigns after so long; 0 is never
	Linger   time.Duration `json:"linger,omitempty"`   // its work goes on so long after the end of its term
	Ack      bool          `json:"ack,omitempty"`      // it acknowledges

	// Of Delay.
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
	Disconnect  Act = "disconnect"   // the connection breaks
	LoseRequest Act = "lose request" // the connection breaks before the next call is run
	LoseAnswer  Act = "lose answer"  // the connection breaks before the next call is answered
	LoseJoin    Act = "lose join"    // the same, for the next Join
	LosePut     Act = "lose put"     // the same, for the next Put
	Pause       Act = "pause"        // the coordinator stands still
	Resume      Act = "resume"       // the coordinator goes on
	Restart     Act = "restart"      // the coordinator restarts
	Wait        Act = "wait"         // nothing
)

// Acts are all acts, the simplest first; twice what is to happen more often.
var Acts = []Act{
	Wait, Join, Join, Join, Join, Leave, Put, Put, Observe, Heal, Heal, Cut, CutRequests, CutAnswers, Crash,
	Expire, Remove, Delay, Delay, Disconnect, LoseRequest, LoseAnswer, LoseJoin, LosePut,
	Ask, Fence, Drop, Close, Pause, Resume, Restart,
}

func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d clients, %d elections, slack %v, seed %d\n", p.Clients, p.Elections, p.Slack, p.Seed)
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
	}
	if s.Do == Delay {
		fmt.Fprintf(&b, " request %v answer %v", s.Request, s.Answer)
	}
	fmt.Fprintf(&b, ", then %v", s.Then)
	return b.String()
}
