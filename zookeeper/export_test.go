package zookeeper

import (
	"context"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// ClaimInSteps makes a claim for the item, and returns what tells whether it holds.
func ClaimInSteps(ctx context.Context, of backend.Session, line string, item backend.Member) (holds func() error, err error) {
	s := of.(*kit.Adapter).Session.(*session)
	at, err := s.options.member(item)
	if err != nil {
		return nil, err
	}
	j := &join{s: s, name: line, line: s.options.path(line), prefix: claimPrefix(item.Key), item: at, position: item.Position}
	others, done := s.joinsOf(line)
	defer done()
	j.others = others
	o, err := j.run(ctx)
	return func() error { return j.holds(ctx, o) }, err
}

// Forget makes a session believe that its member m has gone.
func Forget(of backend.Session, m backend.Member) {
	s := of.(*kit.Adapter).Session.(*session)
	path, _ := s.options.member(m)
	s.forget(s.owner(path, m))
}

// Forgotten returns what is closed when a session believes that its member m has gone.
func Forgotten(of backend.Session, m backend.Member) <-chan struct{} {
	s := of.(*kit.Adapter).Session.(*session)
	path, _ := s.options.member(m)
	return s.owner(path, m).removed()
}

// Remembered returns how many things a session keeps for names of lines, and how many watches it has.
func Remembered(s backend.Session) int {
	z := s.(*kit.Adapter).Session.(*session)
	z.mu.Lock()
	n := len(z.members) + len(z.joins) + len(z.made)
	z.mu.Unlock()
	z.watches.mu.Lock()
	defer z.watches.mu.Unlock()
	for _, w := range z.watches.armed {
		w.turn <- struct{}{}
		if w.live() {
			n++
		}
		<-w.turn
	}
	return n
}
