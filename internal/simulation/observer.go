package simulation

import (
	"fmt"

	"github.com/succession-dev/succession/elect"
)

// An observer follows one election.
type observer struct {
	name   string
	client *client
	e      *election
	seen   bool
	last   elect.Leader
	newest uint64
}

// observe starts an observer, which goes on until the end or as long as its
// process lives.
func (w *world) observe(cl *client, e *election) {
	o := &observer{name: fmt.Sprintf("%s/observer-%d", cl.name, len(w.observers)+1), client: cl, e: e}
	w.observers = append(w.observers, o)
	a := w.actor()
	w.start(o.name, func() {
		for l, err := range elect.New(a.on(w.wrap(cl.b)), e.name, nil).Observe(a.ctx) {
			w.mu.Lock()
			o.see(l, err)
			w.mu.Unlock()
		}
	})
}

func (o *observer) see(l elect.Leader, err error) {
	w := o.client.w
	switch {
	case err != nil:
		if w.ctx.Err() == nil && !o.client.ended {
			w.fail("observer", "%s has given up: %v", o.name, err)
		}
		return
	case !l.Vacant() && l.Token < o.newest:
		w.fail("observer", "%s went back from token %d to %d", o.name, o.newest, l.Token)
	case o.seen && l == o.last:
		w.fail("observer", "%s was told the same twice: %+v", o.name, l)
	}
	o.seen, o.last, o.newest = true, l, max(o.newest, l.Token)
}
