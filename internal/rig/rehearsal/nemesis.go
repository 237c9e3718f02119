//go:build linux

package rehearsal

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/rig/arena"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A nemesis brings faults about, as long as a leg lasts, until it is stopped: each kind
// once, and then by their weights.
type nemesis struct {
	r      *rehearsal
	on     [2]*ground
	rand   *rand.Rand
	mu     sync.Mutex // guards rand
	ctx    context.Context
	cancel context.CancelFunc
	faults sync.WaitGroup
	all    chan struct{} // closed when each kind has come once
}

// halfCut is the fault in which a candidate is cut off from one coordinator alone.
const halfCut = "half-cut"

// of stands between the kind of a fault and the coordinator whose servers suffer it.
const of = " of "

// storms are the faults of a nemesis: those of chaos runs, by their names there, and its
// own.
var storms = []struct {
	kind   string
	weight int
	do     func(*nemesis, arena.Step)
}{
	{"kill", 4, (*nemesis).onCandidate},
	{"pause", 4, (*nemesis).onCandidate},
	{"cut", 3, (*nemesis).onCandidate},
	{"refuse", 1, (*nemesis).onCandidate},
	{"delay", 1, (*nemesis).onCandidate},
	{"reset", 2, (*nemesis).onCandidate},
	{"resign", 3, (*nemesis).onCandidate},
	{halfCut, 3, (*nemesis).onHalf},
	{"pause-server", 1, (*nemesis).onServer},
	{"kill-server", 1, (*nemesis).onServer},
}

// newNemesis returns a nemesis of a leg between two coordinators that has begun.
func (r *rehearsal) newNemesis(ctx context.Context, from, to *ground) *nemesis {
	n := &nemesis{r: r, on: [2]*ground{from, to}, all: make(chan struct{})}
	n.rand = rand.New(rand.NewPCG(r.o.Seed, uint64(len(r.course.Legs))))
	n.ctx, n.cancel = context.WithCancel(ctx)
	once := n.rand.Perm(len(storms))
	n.faults.Go(func() {
		for i := 0; backoff.Sleep(n.ctx, n.between(200*time.Millisecond, n.session()/2)) == nil; i++ {
			if i == len(once) {
				close(n.all)
			}
			if i < len(once) {
				n.strike(n.shape(storms[once[i]].kind))
			} else {
				n.strike(n.draw())
			}
		}
	})
	return n
}

// through waits until each kind of fault has come once.
func (n *nemesis) through() {
	select {
	case <-n.all:
	case <-n.ctx.Done():
	}
}

// stop ends the nemesis, and returns when all faults have been undone.
func (n *nemesis) stop() {
	n.cancel()
	n.faults.Wait()
}

func (n *nemesis) between(least, most time.Duration) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return least + time.Duration(n.rand.Int64N(int64(most-least)))
}

func (n *nemesis) intN(most int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rand.IntN(most)
}

// session returns the longer session time of both coordinators.
func (n *nemesis) session() time.Duration {
	return max(n.on[0].TTL, n.on[1].TTL, 2*time.Second)
}

// draw draws a fault by their weights.
func (n *nemesis) draw() arena.Step {
	total := 0
	for _, s := range storms {
		total += s.weight
	}
	i := n.intN(total)
	for _, k := range storms {
		if i -= k.weight; i < 0 {
			return n.shape(k.kind)
		}
	}
	panic("weights are positive")
}

// shape draws what is open of a fault of a kind.
func (n *nemesis) shape(kind string) arena.Step {
	s := arena.Step{At: n.r.Now(), Kind: kind, Index: n.intN(fleet), Leader: n.intN(2) == 0}
	// Short of the session's time, and past it.
	session := n.session()
	s.For = n.between(session/10, session/2)
	if n.intN(3) == 0 {
		s.For = n.between(session*4/5, session*3/2)
	}
	if s.Kind == "delay" {
		s.Amount = n.between(20*time.Millisecond, session/4)
	}
	return s
}

// strike does a fault, and returns when it has begun.
func (n *nemesis) strike(s arena.Step) {
	for _, k := range storms {
		if k.kind == s.Kind {
			n.faults.Go(func() { k.do(n, s) })
		}
	}
}

// seize is for the moment at which the operator takes a step: it goes for the leader,
// or for nobody, and returns how often the operator's command is to be killed.
func (n *nemesis) seize() (kills int) {
	after, kind := n.between(0, commandMiddle), []string{"kill", "pause", "cut", ""}[n.intN(4)]
	if kind != "" {
		s := n.shape(kind)
		s.Leader = true
		n.faults.Go(func() {
			if backoff.Sleep(n.ctx, after) == nil {
				n.onCandidate(s)
			}
		})
	}
	return n.intN(stepKills + 1)
}

// onCandidate does a fault that a candidate of any run may suffer.
func (n *nemesis) onCandidate(s arena.Step) { n.r.Strike(n.ctx, s) }

// onHalf cuts a candidate off from one of the two coordinators.
func (n *nemesis) onHalf(s arena.Step) {
	c := n.r.Aim(s)
	if c == nil {
		return
	}
	defer c.Busy.Unlock()
	g := n.on[n.intN(2)]
	n.r.Say("%s is cut off from %s for %v", c.ID, g.Name, s.For)
	defer n.r.Notes.Begin(halfCut, c.ID)()
	for _, p := range n.r.fronts(c, g) {
		p.Cut()
	}
	arena.Last(n.ctx, s.For)
	for _, p := range n.r.fronts(c, g) {
		p.Heal()
	}
}

// onServer pauses or restarts a server for a moment, which is short of a session.
func (n *nemesis) onServer(s arena.Step) {
	g := n.on[n.intN(2)]
	if g.Cluster == nil {
		g = n.on[1-slices.Index(n.on[:], g)] // which has servers
	}
	g.Busy.Lock()
	defer g.Busy.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	server := g.Servers()[s.Index%len(g.Servers())]
	moment := n.between(n.session()/20, n.session()/4)
	n.r.Say("%s of %s for %v", s.Kind, g.Name, moment)
	defer n.r.Notes.Begin(s.Kind+of+g.Name, "")()
	err := n.onServerFor(server, s.Kind == "kill-server", moment)
	if err != nil {
		n.r.Fail("rig", "%s of %s: %v", s.Kind, g.Name, err)
	}
}

func (n *nemesis) onServerFor(server *coordtest.Server, kill bool, moment time.Duration) error {
	if kill {
		server.Kill()
	} else if err := server.Pause(); err != nil {
		return err
	}
	arena.Last(n.ctx, moment)
	undo := server.Resume
	if kill {
		undo = server.Start
	}
	if err := undo(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyLimit) // also where the leg is over
	defer cancel()
	return server.Ready(ctx)
}
