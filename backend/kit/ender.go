package kit

import "sync"

// An Ender keeps the funcs of OnEnd for a session. A driver's session embeds one, and calls TellEnd when
// it ends. The zero Ender is ready to use. It is safe for concurrent use.
type Ender struct {
	mu    sync.Mutex
	ended error
	funcs map[*func(error)]bool
}

// OnEnd implements OnEnd of [backend.Session].
func (e *Ender) OnEnd(f func(why error)) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended != nil {
		f(e.ended)
		return func() {}
	}
	if e.funcs == nil {
		e.funcs = make(map[*func(error)]bool)
	}
	key := &f
	e.funcs[key] = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.funcs, key)
	}
}

// TellEnd calls all funcs of OnEnd, and returns when they have returned. The session must have ended
// in this process, and nothing of it may have been released. why wraps [backend.ErrSessionEnded]. Only the first
// call does anything.
func (e *Ender) TellEnd(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended != nil {
		return
	}
	e.ended = why
	for f := range e.funcs {
		(*f)(why)
	}
	e.funcs = nil
}
