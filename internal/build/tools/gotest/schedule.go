package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// A schedule is a plan that is being carried out. The builder, the makers of needs and the lanes
// tell it what they have done, and wait for each other by it.
type schedule struct {
	*plan
	bin     string // the folder of the programs
	history history
	passed  *passed
	total   int // programs

	mu      sync.Mutex // of all below, and of the plan
	changed sync.Cond
	began   map[*program]time.Time // of those that run
	done    int
	busy    int      // programs that run with the usual priority
	apart   *program // that runs alone, or nil
}

func newSchedule(p *plan, bin string, h history, before *passed) *schedule {
	s := &schedule{plan: p, bin: bin, history: h, passed: before, began: make(map[*program]time.Time)}
	s.changed.L = &s.mu
	for _, b := range p.builds {
		s.total += len(b.programs)
	}
	return s
}

// runAll builds and runs what the arguments name. It reads from a file how long programs took in
// earlier runs, and notes there how long they take now, unless it has no name. What has passed is kept in a file beside
// that. It ends early when ctx does.
func (r *report) runAll(ctx context.Context, args []string, historyFile string) error {
	p, err := parse(args, r.out)
	if err != nil {
		return err
	}
	before := new(passed)
	if p.notes && historyFile != "" {
		if before, err = openPassed(filepath.Join(filepath.Dir(historyFile), "passed.jsonl"), p.again, r.out); err != nil {
			return err
		}
	}
	r.before = before.leaveOut(p)
	bin, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "gotest-") // as go test does, as a link does not leave a file system
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	s := newSchedule(p, bin, readHistory(historyFile), before)
	r.status = func() string { return s.status(r.failures.Load()) }
	r.times.before = s.history.tests
	defer r.out.keepStatus(r.status)()
	defer context.AfterFunc(ctx, s.drop)()
	var working sync.WaitGroup
	for _, list := range p.makes {
		working.Go(func() {
			one := r.child()
			one.make(ctx, s, list)
			r.merge(one)
		})
	}
	working.Go(func() {
		for b := s.nextBuild(); b != nil; b = s.nextBuild() {
			one := r.child()
			one.build(ctx, s, b)
			r.merge(one)
		}
	})
	for _, l := range p.lanes {
		working.Go(func() {
			for p, at := s.next(l); p != nil; p, at = s.next(l) {
				one := r.child()
				one.program(ctx, s, p, at)
				r.merge(one)
			}
		})
	}
	working.Wait()
	err = s.history.write(historyFile, r.times.tests)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}

// drop leaves out all that has not begun.
func (s *schedule) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.builds, s.then, s.alone = nil, nil, nil
	for _, l := range s.lanes {
		l.programs = nil
	}
	s.changed.Broadcast()
}

// next returns the program that the lane is to run, and with which priority; nil when there is none
// left. It waits until one is built, and passes over those whose needs are being made. What is not idle waits for --before.
func (s *schedule) next(l *lane) (*program, priority) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pending := func(n *need) bool { return !n.made && n.err == nil }
	for {
		left := 0
		for _, o := range s.offers(l) {
			i := first(o.list)
			left += len(*o.list)
			if i < 0 || o.waits || o.at != idle && slices.ContainsFunc(s.before, pending) {
				continue
			}
			p := (*o.list)[i]
			if p.state != built && missing(p.needs) == nil {
				break // it is the next, and being built
			}
			if o.list == &s.alone {
				s.apart = p
			}
			*o.list = slices.Delete(*o.list, i, i+1)
			l.now, p.state, p.idle, s.began[p] = p, running, o.at == idle, time.Now()
			if !p.idle {
				s.busy++
			}
			s.changed.Broadcast()
			return p, o.at
		}
		if left == 0 {
			return nil, usual
		}
		s.changed.Wait()
	}
}

// An offer is a list that a lane takes programs from, and with which priority.
type offer struct {
	list  *[]*program
	at    priority
	waits bool // its time has not come
}

// offers returns the lists that the lane takes programs from, in their order: its own, that of what comes then, what runs alone, and
// what idle lanes have left when all else has ended, for which nobody needs to wait any longer then. What runs alone does not wait for
// what itself waits until a need has been made.
func (s *schedule) offers(l *lane) []offer {
	left := slices.Clone(s.then)
	for _, l := range s.lanes {
		if !l.idle {
			left = append(left, l.programs...)
		}
	}
	more := slices.ContainsFunc(left, func(p *program) bool { return p.state != ended && ready(p) })
	idleOnly := len(left) == 0 && len(s.alone) == 0 && s.apart == nil
	mine := offer{list: &l.programs, waits: !l.idle && s.apart != nil}
	if l.idle && !idleOnly {
		mine.at = idle
	}
	busy := l.idle && len(l.programs) > 0
	offers := []offer{
		mine,
		{list: &s.then, waits: busy || s.apart != nil},
		{list: &s.alone, waits: busy || more || s.busy > 0},
	}
	for _, other := range s.lanes {
		if other.idle && other != l {
			offers = append(offers, offer{list: &other.programs, waits: !idleOnly})
		}
	}
	return offers
}

// first returns the index of the first program in the list whose needs are not being made any more, of one that is built if
// it can; -1 if there is none. It removes those that could not be built.
func first(list *[]*program) int {
	*list = slices.DeleteFunc(*list, func(p *program) bool { return p.state == ended })
	if i := slices.IndexFunc(*list, func(p *program) bool { return p.state == built && ready(p) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(*list, ready)
}

// ready reports whether the needs of the program are not being made any more.
func ready(p *program) bool { return there(p.needs) || missing(p.needs) != nil }

// nextBuild returns what is to be built next, and removes it; nil when nothing is left. What can
// be run at once is built before what has to wait.
func (s *schedule) nextBuild() *build {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := func(b *build) bool { return there(b.needs) || missing(b.needs) != nil }
	for len(s.builds) > 0 {
		i := slices.IndexFunc(s.builds, func(b *build) bool {
			return ready(b) && !slices.ContainsFunc(b.programs, func(p *program) bool { return !there(p.needs) })
		})
		if i < 0 {
			i = slices.IndexFunc(s.builds, ready)
		}
		if i >= 0 {
			b := s.builds[i]
			s.builds = slices.Delete(s.builds, i, i+1)
			return b
		}
		s.changed.Wait()
	}
	return nil
}

// isMade notes that a command has made a need, or why it has not.
func (s *schedule) isMade(n *need, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n.made, n.err = err == nil, err
	s.changed.Broadcast()
}

// isBuilt notes that a program can be run.
func (s *schedule) isBuilt(p *program, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.state == unbuilt {
		p.state, p.path = built, path
		s.changed.Broadcast()
	}
}

// end notes that nothing more will come of a program, and how long it ran if it has passed. It
// reports whether that was not known.
func (s *schedule) end(p *program, passed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.state == ended {
		return false
	}
	if passed {
		s.history.note(p.key, time.Since(s.began[p]))
	}
	if p.state == running && !p.idle {
		s.busy--
	}
	if s.apart == p {
		s.apart = nil
	}
	delete(s.began, p)
	p.state = ended
	s.done++
	s.changed.Broadcast()
	return true
}

// status says how far the run is.
func (s *schedule) status(failed int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf("%d of %d, %d failed", s.done, s.total, failed)
	if left := s.left(); left != "" {
		text += ", " + left
	}
	if n := s.waitsFor(); n != nil {
		text += "; making " + n.name
	}
	return text
}

// waitsFor returns the first need that is still being made and that keeps a program waiting; nil if there is none.
func (s *schedule) waitsFor() *need {
	waiting := slices.Concat(s.then, s.alone)
	for _, l := range s.lanes {
		waiting = append(waiting, l.programs...)
	}
	for _, list := range s.makes {
		for _, n := range list {
			if !n.made && n.err == nil && slices.ContainsFunc(waiting, func(p *program) bool { return slices.Contains(p.needs, n) }) {
				return n
			}
		}
	}
	return nil
}

// left says about how long the run still takes, going by how long each program took in an earlier run. It takes at least so long if one
// is new, or while something has yet to be made that others wait for. It is empty if nothing is known.
func (s *schedule) left() string {
	if s.done == s.total {
		return ""
	}
	word := "about"
	if s.waitsFor() != nil {
		word = "at least"
	}
	known := func(p *program) time.Duration {
		took, known := s.history.took[p.key]
		if !known {
			word = "at least"
		}
		return took
	}
	ends := make([]time.Duration, len(s.lanes))
	for i, l := range s.lanes {
		for _, p := range l.programs {
			if p.state != ended {
				ends[i] += known(p)
			}
		}
		if p := l.now; p != nil && p.state == running {
			ends[i] += max(0, known(p)-time.Since(s.began[p]))
		}
	}
	for _, p := range s.then {
		first := slices.Index(ends, slices.Min(ends))
		ends[first] += known(p)
	}
	most := slices.Max(ends)
	for _, p := range s.alone {
		most += known(p)
	}
	switch {
	case most >= time.Minute:
		return fmt.Sprintf("%s %.0f min left", word, most.Minutes())
	case word == "about":
		return "less than a minute left"
	default:
		return ""
	}
}
