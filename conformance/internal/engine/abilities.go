package engine

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// Abilities keeps which abilities the backend lacks. The first trial of a run finds that out.
type Abilities struct {
	mu    sync.Mutex
	known bool
	lacks map[Fault]string // the ability to the reason
}

// Lacks returns the abilities that the backend is known to lack, with the reasons.
func (a *Abilities) Lacks() map[Fault]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.lacks)
}

func (a *Abilities) lack(f Fault) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, lacks := a.lacks[f]
	return lacks
}

// Can reports whether the trial can use f: whether the harness has the fault, or the backend
// the ability.
func (t *Trial) Can(f Fault) bool {
	return t.Faults.Has(f) && !t.Abilities.lack(f)
}

// able finds out which abilities the backend lacks, if that is not known yet. It reports whether
// the rule can be exercised.
func (t *Trial) able() bool {
	t.Abilities.find(t)
	return !slices.ContainsFunc(t.rule.Needs, func(f Fault) bool { return !t.Can(f) })
}

func (a *Abilities) find(t *Trial) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		a.lacks, a.known = t.lacks() // if it is not known, the rule shows why
	}
}

// lacks opens a client, and tries all that a backend may lack. It leaves nothing behind. It reports whether it
// could try all.
func (t *Trial) lacks() (lacks map[Fault]string, all bool) {
	lacks = make(map[Fault]string)
	ctx, cancel := t.Within(t.Recovery())
	defer cancel()
	b, err := t.Open(ctx)
	if err != nil {
		return lacks, false
	}
	defer b.Close()
	s, err := b.Session(ctx)
	if err != nil {
		return lacks, false
	}
	if s.TTL() == 0 {
		lacks[Deadlines] = "sessions have no time (Session.TTL is 0)"
	}
	line := t.name("abilities")
	if _, err := s.Get(ctx, line); errors.Is(err, errors.ErrUnsupported) {
		lacks[Records] = "the backend has no records (errors.ErrUnsupported)"
	}
	j, err := s.Join(ctx, line, "abilities", line+"-record")
	if err != nil {
		return lacks, false
	}
	m := j.Member
	if j.Place == nil || j.Record == nil {
		lacks[Places] = "Join does not tell the place"
	}
	// No record has this version, so nothing is pinned.
	if err := s.Pin(ctx, m, backend.Header{}, 1); errors.Is(err, errors.ErrUnsupported) {
		lacks[Pins] = "the backend has no pins (errors.ErrUnsupported)"
	}
	if err := s.Remove(ctx, m, m); errors.Is(err, errors.ErrUnsupported) { // m is no item, so it stays
		lacks[Items] = "the backend has no items (errors.ErrUnsupported)"
	}
	shared, err := s.JoinShared(ctx, line, "abilities", "")
	if errors.Is(err, errors.ErrUnsupported) {
		lacks[Shares] = "the backend has no shared members (errors.ErrUnsupported)"
	} else if err == nil {
		_ = s.Leave(ctx, shared.Member)
	}
	_ = s.Leave(ctx, m) // if this fails, m goes with the session
	return lacks, true
}
