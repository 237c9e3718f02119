package elect

import "slices"

// A listener is told of each change of the present term.
type listener struct{ f func(*Term) }

// Term returns the present term of this candidate, or nil if it does not lead. At that moment its
// Check returns nil; call Check again before work that must not be done twice. Term does not block.
func (e *Election) Term() *Term {
	if t := e.present.Load(); t != nil && t.Check() == nil {
		return t
	}
	return nil
}

// Listen calls f with the present term, or with nil if there is none, before it returns. Then it
// calls f with each term of this candidate that begins, and with nil when a term ends. The calls
// come in order, one at a time. A term begins for f before [Election.Campaign] returns it and
// before Run calls its function. It ends for f when its context has ended, although its work may
// still go on.
//
// f must not block, and must not call Listen or campaign. It may call [Term.Resign], also of a term that has
// ended; it is told of that end after it has returned. Call stop to end it. It does not wait: one call may be under way when it
// returns, or just begin.
func (e *Election) Listen(f func(*Term)) (stop func()) {
	l := &listener{f}
	<-e.inTurn(func() {
		e.mu.Lock()
		e.listeners = append(slices.Clip(e.listeners), l)
		e.mu.Unlock()
		f(e.Term())
	})
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.listeners = slices.DeleteFunc(slices.Clone(e.listeners), func(o *listener) bool { return o == l })
	}
}

// begun notes that t is the present term. All listeners have been told when it returns.
func (e *Election) begun(t *Term) {
	<-e.inTurn(func() {
		e.present.Store(t)
		e.tell(t)
	})
}

// over notes that t is not the present term any more. It waits for no listener, because one may have
// called it.
func (e *Election) over(t *Term) {
	e.inTurn(func() {
		if e.present.CompareAndSwap(t, nil) {
			e.tell(nil)
		}
	})
}

// inTurn has f called after all funcs that were given to it before: either by itself, or by the
// goroutine that is already calling them. The channel is closed when f has returned.
func (e *Election) inTurn(f func()) <-chan struct{} {
	done := make(chan struct{})
	e.mu.Lock()
	e.turns = append(e.turns, func() { defer close(done); f() })
	if e.telling {
		e.mu.Unlock()
		return done
	}
	e.telling = true
	defer func() { // also if a listener panics
		e.telling = false
		e.mu.Unlock()
	}()
	for len(e.turns) > 0 {
		e.takeTurn()
	}
	e.turns = nil
	return done
}

// takeTurn calls what is next, without the lock that its caller holds.
func (e *Election) takeTurn() {
	next := e.turns[0]
	e.turns = e.turns[1:]
	e.mu.Unlock()
	defer e.mu.Lock()
	next()
}

func (e *Election) tell(t *Term) {
	e.mu.Lock()
	all := e.listeners
	e.mu.Unlock()
	for _, l := range all {
		e.mu.Lock()
		stopped := !slices.Contains(e.listeners, l)
		e.mu.Unlock()
		if !stopped {
			l.f(t)
		}
	}
}
