package elect

import (
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
)

// remindOutage is how often an outage that lasts is logged.
const remindOutage = time.Minute

// An outage is a time in which the candidates of a backend cannot join their lines, because the
// coordinator cannot be reached or has ended the session. A process may have thousands of candidates, so
// the outage is logged once for all of them: when it begins, now and then, and when it is over.
type outage struct {
	began, told time.Time
	waiting     map[*Election]bool // the elections whose candidates have met it
}

// outages are those of all backends of the process.
var outages = struct {
	sync.Mutex
	of map[backend.Backend]*outage
}{of: make(map[backend.Backend]*outage)}

// isOutage reports whether err says that a candidate has met an outage.
func isOutage(err error) bool {
	return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrSessionEnded)
}

// interrupted logs that a campaign was interrupted by err and goes on.
func (e *Election) interrupted(err error) {
	const what = "campaign interrupted, joining again"
	root, ok := rootOf(e.b)
	if !ok || !isOutage(err) {
		e.o.Logger.Warn(what, "err", err)
		return
	}
	lasts, elections, tell := e.meet(root)
	log := e.o.Logger.Debug
	if tell {
		log = e.o.Logger.Warn
	}
	if lasts == 0 {
		log(what, "err", err)
	} else {
		log(what, "err", err, "for", lasts, "elections", elections)
	}
}

// meet notes that e has met an outage. It returns how long that has lasted and how many elections
// have met it, and reports whether to log it now.
func (e *Election) meet(root backend.Backend) (lasts time.Duration, elections int, tell bool) {
	outages.Lock()
	defer outages.Unlock()
	o, now := outages.of[root], time.Now()
	if o == nil {
		o = &outage{began: now, waiting: make(map[*Election]bool)}
		outages.of[root] = o
	}
	o.waiting[e] = true
	if tell = now.Sub(o.told) >= remindOutage; tell {
		o.told = now
	}
	return now.Sub(o.began), len(o.waiting), tell
}

// restored logs the end of the outage that e has met, if there is one: e has joined its line.
func (e *Election) restored() {
	if o := e.forget(true); o != nil {
		e.o.Logger.Info("joined again, the coordinator is there", "after", time.Since(o.began))
	}
}

// forget takes e out of the outage that it has met, which it returns; nil if there is none. If over
// is true, the outage is over for all. Otherwise it is over when no election is left in it.
func (e *Election) forget(over bool) *outage {
	root, ok := rootOf(e.b)
	if !ok {
		return nil
	}
	outages.Lock()
	defer outages.Unlock()
	o := outages.of[root]
	if o == nil || !o.waiting[e] {
		return nil
	}
	if delete(o.waiting, e); over || len(o.waiting) == 0 {
		delete(outages.of, root)
	}
	return o
}

// rootOf returns the backend below the views of package view. It reports false if that backend
// cannot be compared with others.
func rootOf(b backend.Backend) (backend.Backend, bool) {
	for {
		u, ok := b.(interface{ Unwrap() backend.Backend })
		if !ok {
			return b, reflect.ValueOf(b).Comparable()
		}
		b = u.Unwrap()
	}
}
