package kubernetes

import "context"

// An API server works on some hundreds of requests at a time, for all its clients together, and thousands of elections may want
// something at one moment: when a process starts, or its connection has broken. So requests take turns. A watch has its turn until it is
// open.
const (
	// maxTurns is how many requests a backend has under way, and maxUrgent how many urgent ones it has beside them.
	maxTurns, maxUrgent = 24, 8
)

// turns are those of a backend.
type turns struct{ all, urgent chan struct{} }

func newTurns() turns {
	return turns{make(chan struct{}, maxTurns), make(chan struct{}, maxUrgent)}
}

// A rank says how requests take turns.
type rank int

const (
	ordinary rank = iota
	urgent        // what tells of the end of a term, or keeps it, or is done under it: watches, taking and renewing locks, and guarded writes
	atOnce        // the beginning of a session, its renewals and its end, one at a time: they wait for nothing
)

type rankKey struct{}

// ranked returns a context whose requests have the rank.
func ranked(ctx context.Context, r rank) context.Context { return context.WithValue(ctx, rankKey{}, r) }

// rankOf returns the rank of the requests of a context.
func rankOf(ctx context.Context) rank {
	r, _ := ctx.Value(rankKey{}).(rank)
	return r
}

// take waits until a request may be sent. The caller calls give when it is answered.
func (t turns) take(ctx context.Context) (give func(), err error) {
	var beside chan struct{} // nil takes nothing
	switch rankOf(ctx) {
	case atOnce:
		return func() {}, nil
	case urgent:
		beside = t.urgent
	}
	select {
	case t.all <- struct{}{}:
		return func() { <-t.all }, nil
	case beside <- struct{}{}:
		return func() { <-beside }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
