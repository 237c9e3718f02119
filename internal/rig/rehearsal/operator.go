//go:build linux

package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/rig/arena"
)

// operator is the row of the pictures that shows the steps.
const operator = "operator"

// A Course is what the operator did, and when.
type Course struct {
	Legs     []Leg
	Ordinary []Handover
	Killed   int // how often the operator's command was killed
}

// A Leg is one migration, from its begin to its finish.
type Leg struct {
	From, To     string // the coordinators
	Stormy       bool   // there were faults
	Began, Ended time.Duration
	// Asked is when a cutover was asked for first, and Moved when it was known to be
	// done. In between nobody outside knows on which coordinator a place is taken.
	Asked, Moved time.Duration
}

// A Handover is one that has nothing to do with a migration.
type Handover struct {
	On       string // the coordinator
	Crash    bool   // of the leader; otherwise it resigned
	From, To time.Duration
}

// How many ordinary handovers there are on each coordinator.
const (
	resignations = 5
	crashes      = 1
)

// ordinary has leaders resign and crash where the election is on one coordinator alone,
// and notes what that costs.
func (r *rehearsal) ordinary(ctx context.Context, g *ground) error {
	r.Say("ordinary handovers on %s", g.Name)
	for i := range resignations + crashes {
		h, err := r.handover(ctx, i >= resignations)
		if err != nil {
			return err
		}
		h.On = g.Name
		r.course.Ordinary = append(r.course.Ordinary, h)
	}
	return nil
}

// handover has the leader go, and returns when somebody else leads and everybody stands
// in line again.
func (r *rehearsal) handover(ctx context.Context, crash bool) (h Handover, err error) {
	won, err := r.leads(ctx, 0)
	if err != nil {
		return h, err
	}
	c := r.Candidate(won.Candidate)
	h = Handover{Crash: crash, From: r.Now()}
	if crash {
		defer r.Notes.Begin("kill", c.ID)()
		c.Crash()
	} else {
		c.Resign()
	}
	if won, err = r.leads(ctx, h.From); err != nil {
		return h, err
	}
	h.To = won.At
	if crash {
		if err := c.Start(); err != nil {
			return h, err
		}
	}
	return h, r.stands(ctx, c, h.From)
}

// leg moves the election from one coordinator to the other, as docs/migration.md says.
func (r *rehearsal) leg(ctx context.Context, from, to *ground, stormy bool) (err error) {
	l := Leg{From: from.Name, To: to.Name, Stormy: stormy, Began: r.Now()}
	weather := "without faults"
	var n *nemesis // nil in good weather
	if stormy {
		weather = "with faults"
		n = r.newNemesis(ctx, from, to)
		defer n.stop()
	}
	r.Say("from %s to %s, %s", from.Name, to.Name, weather)
	if err := r.operate(ctx, from, to, "begin", n); err != nil {
		return err
	}
	both := "migrate:?from=" + url.QueryEscape(from.url) + "&to=" + url.QueryEscape(to.url)
	if err := r.roll(ctx, "into both", both, n); err != nil {
		return err
	}
	if err := r.operate(ctx, from, to, "status", n); err != nil {
		return err
	}

	if err := r.writes(ctx, l.Began); err != nil {
		return err
	}
	before, err := r.leads(ctx, 0)
	if err != nil {
		return err
	}
	l.Asked = r.Now()
	if err := r.operate(ctx, from, to, "cutover", n); err != nil {
		return err
	}
	l.Moved = r.Now()
	if !stormy {
		if after, ok := r.Live.Leader(r.Elections[0]); !ok || after.Token != before.Token {
			r.FailSince(l.Asked, "cutover", "%s (token %d) led before it, and not after", before.Candidate, before.Token)
		}
		if err := r.follow(ctx, l.Asked); err != nil {
			return err
		}
	}

	if err := r.roll(ctx, "into "+to.Name, to.url, n); err != nil {
		return err
	}
	if err := r.operate(ctx, from, to, "finish", n); err != nil {
		return err
	}
	if n != nil {
		n.through()
		n.stop()
	}
	if err := r.recover(ctx, from, to); err != nil {
		return err
	}
	if err := r.writes(ctx, l.Moved); err != nil {
		return err
	}
	l.Ended = r.Now()
	r.course.Legs = append(r.course.Legs, l)
	return nil
}

// recover waits until all candidates are in good health, and nothing is left of others, so
// that the next step is not blamed for this one.
func (r *rehearsal) recover(ctx context.Context, from, to *ground) error {
	for _, c := range r.Candidates {
		if err := r.stands(ctx, c, 0); err != nil {
			return err
		}
	}
	if _, err := r.leads(ctx, 0); err != nil {
		return err
	}
	if err := r.vacate(ctx, from, nobody); err != nil {
		return err
	}
	return r.vacate(ctx, to, func(m backend.Member) bool {
		e, ok := r.Live.Joined(arena.Seat{Candidate: m.Value, Election: m.Line})
		return ok && e.Position == m.Position
	})
}

// follow waits until all who waited on the old coordinator stand on the new one.
func (r *rehearsal) follow(ctx context.Context, since time.Duration) error {
	defer r.marks.Begin("follow", operator)()
	for _, c := range r.Candidates {
		if e, ok := r.Live.Leader(r.Elections[0]); ok && e.Candidate == c.ID {
			continue
		}
		if err := r.stands(ctx, c, since); err != nil {
			return err
		}
	}
	return nil
}

// roll restarts all candidates with another URL, one after the other. The nemesis, if
// there is one, gets time in between.
func (r *rehearsal) roll(ctx context.Context, what, url string, n *nemesis) error {
	r.Say("restarting %s", what)
	defer r.marks.Begin(what, operator)()
	for _, i := range r.rand.Perm(len(r.Candidates)) {
		if n != nil {
			arena.Last(ctx, n.between(0, n.session()/6))
		}
		if err := r.replace(ctx, r.Candidates[i], url); err != nil {
			return err
		}
	}
	return nil
}

// replace restarts one candidate. It waits until the fault is over that it suffers, and
// until it stands in line again.
func (r *rehearsal) replace(ctx context.Context, c *arena.Candidate, url string) error {
	c.Busy.Lock()
	defer c.Busy.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	defer r.marks.Begin("restart", c.ID)()
	if err := c.Retire(); err != nil {
		r.Fail("end", "%v", err)
		c.Crash()
	}
	c.URL = url
	since := r.Now()
	if err := c.Start(); err != nil {
		return err
	}
	return r.stands(ctx, c, since)
}

const (
	// stepLimit is how long a step may take, with all its attempts.
	stepLimit = 2 * time.Minute
	// commandMiddle is within what time a command is in the middle of its work.
	commandMiddle = 200 * time.Millisecond
	// stepKills is how often the command of a step is killed at most.
	stepKills = 2
)

// operate takes one step of the migration by the command, and takes it again until it
// is done. The nemesis, if there is one, kills the command in the middle, and goes for
// the leader meanwhile.
func (r *rehearsal) operate(ctx context.Context, from, to *ground, step string, n *nemesis) error {
	kills := 0
	if n != nil {
		arena.Last(ctx, n.between(0, n.session()/2))
		kills = n.seize()
	}
	defer r.marks.Begin(step, operator)()
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	for {
		var life time.Duration // 0 is any
		if kills > 0 {
			kills--
			life = max(1, n.between(0, commandMiddle))
		}
		since := r.Now()
		code, said, err := r.command(ctx, life, step, from, to)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", step, err)
		case code == 0:
			r.Say("%s: done; %s", step, said)
			return nil
		case code < 0:
			r.Say("%s: killed after %v", step, life)
			r.course.Killed++
			r.marks.Begin("killed", operator)()
			continue
		}
		r.Say("%s: exit code %d; see operator.log", step, code)
		if n == nil {
			r.FailSince(since, "step", "%s ended with exit code %d, and nothing was in its way; see operator.log", step, code)
		}
		if err := backoff.Sleep(ctx, time.Second); err != nil {
			return fmt.Errorf("%s: %w; see operator.log", step, err)
		}
	}
}

// command runs the command of a step, and kills it when its life is over. It returns
// the exit code, -1 where it was killed, and the last line that it printed: what is to be
// done next. What was in its way is in the log.
func (r *rehearsal) command(ctx context.Context, life time.Duration, step string, from, to *ground) (code int, said string, err error) {
	argv := append(r.o.Command[:len(r.o.Command):len(r.o.Command)], "migrate", step, r.Elections[0], "--from", from.url, "--to", to.url)
	if step == "cutover" {
		argv = append(argv, "--yes")
	}
	p, err := arena.StartProcess(argv, r.o.Env, filepath.Join(r.o.Dir, "operator.log"), func(line []byte) {
		said = strings.TrimSpace(string(line))
	})
	if err != nil {
		return 0, "", err
	}
	var over <-chan time.Time
	if life > 0 {
		timer := time.NewTimer(life)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-p.Done:
	case <-over:
		p.Kill()
	case <-ctx.Done():
		p.Kill()
		return 0, "", context.Cause(ctx)
	}
	var status interface{ ExitCode() int } // -1 of a process that a signal ended
	switch {
	case p.Err == nil:
		return 0, said, nil
	case errors.As(p.Err, &status):
		return status.ExitCode(), said, nil
	}
	return 0, said, p.Err
}

// BuildCommand builds the command succession in a folder, and returns its path. It needs
// the go command, and to be called within the library's module. It blocks for as long as that
// takes.
func BuildCommand(ctx context.Context, dir string) (string, error) {
	file := filepath.Join(dir, "succession")
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/succession-dev/succession").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(strings.TrimSpace(string(root)), "cmd/succession"), "-o", file, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build succession: %w\n%s", err, out)
	}
	return file, nil
}
