package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/history"
)

// A candidate stands in one election until it is told to stop.
type candidate struct {
	w      *world
	client *client
	e      *election
	name   string
	how    Step
	actor  actor
	ctx    context.Context
	cancel context.CancelFunc

	position uint64 // where it believes to stand; 0 is nowhere
	stood    uint64 // where it stood last
	session  backend.Session
	stopped  bool
	stale    bool          // the log went back, and its place, from before, with it
	unready  func()        // ends the fault that it is not ready; nil where it is
	changed  time.Time     // when that was not so before; zero where it has always been so
	joined   time.Time     // when it joined last
	resting  chan struct{} // closed when an operator has it begin again; nil where it has not given up
}

// tap is a client as one candidate sees it: it notes the session of the campaign.
type tap struct {
	backend.Backend
	c *candidate
}

func (t tap) Session(ctx context.Context) (backend.Session, error) {
	s, err := t.Backend.Session(ctx)
	if err == nil {
		t.c.w.mu.Lock()
		t.c.session = s
		t.c.w.mu.Unlock()
	}
	return s, err
}

// join starts a candidate.
func (w *world) join(cl *client, e *election, how Step) {
	name := fmt.Sprintf("%s/%d", cl.name, len(w.candidates)+1)
	c := &candidate{w: w, client: cl, e: e, name: name, how: how, actor: w.actor()}
	c.ctx, c.cancel = context.WithCancel(c.actor.ctx)
	w.candidates = append(w.candidates, c)
	c.setReady(!how.Unready)
	w.start("candidate "+c.name, func() {
		err := c.run()
		w.mu.Lock()
		defer w.mu.Unlock()
		c.stopped = true
		if c.ctx.Err() == nil && !cl.ended {
			w.fail("candidate", "%s has given up: %v", c.name, err)
		}
	})
}

// run campaigns until it is told to stop. Where it may give up it does so until an
// operator has it begin again.
func (c *candidate) run() error {
	for {
		err := c.campaign()
		if c.ctx.Err() != nil {
			return nil
		}
		again := c.rest(err)
		if again == nil {
			return err
		}
		select {
		case <-again:
		case <-c.ctx.Done():
			return nil
		}
	}
}

// rest returns what to wait for; nil where nothing explains that the candidate has given
// up.
func (c *candidate) rest(err error) <-chan struct{} {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if !c.w.mayRest(c, err) {
		return nil
	}
	c.resting = make(chan struct{})
	return c.resting
}

// mayRest reports whether the candidate has been told what makes it give up.
func (w *world) mayRest(c *candidate, err error) bool {
	recently := func(t time.Time) bool { return !t.IsZero() && (time.Since(t) < chain || c.client.troubled()) }
	switch {
	case c.client.ended:
		return true
	case w.plan.Migrate:
		return w.mayRefuse(c, err)
	case errors.Is(err, backend.ErrReset):
		return c.client.era < w.era
	case errors.Is(err, backend.ErrSealed):
		return w.header(w.sides[oldSide], c.e).Sealed != "" || recently(c.e.sealed)
	}
	return false
}

func (c *candidate) campaign() error {
	o := elect.Options{ID: c.name, Margin: c.w.plan.Margin, ResignTimeout: resignTimeout, Trace: c.trace}
	c.choose(&o)
	e := elect.New(tap{c.client.b, c}, c.e.name, &o)
	for c.ctx.Err() == nil {
		if !c.how.Campaign {
			if err := e.Run(c.ctx, c.lead); err != nil {
				return err
			}
			continue
		}
		t, err := e.Campaign(c.ctx)
		if err != nil {
			return err
		}
		_ = c.lead(t.Context(), t)
		_ = t.Resign(c.ctx) // where it fails the session ends, and that is looked at
	}
	return nil
}

// trace notes the steps of the campaign.
func (c *candidate) trace(ev trace.Event) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.client.ended {
		return
	}
	switch ev.Kind {
	case trace.Joined:
		c.position, c.stood, c.stale, c.joined = ev.Member.Position, ev.Member.Position, false, time.Now()
		c.note(history.Joined, nil)
	case trace.Left:
		c.note(history.Left, ev.Err)
		c.position = 0
	case trace.Retrying:
		w.explain(c, c.stood, ev.Err)
	}
}

func (c *candidate) note(k history.Kind, why error) {
	c.w.log.Note(history.Event{Kind: k, Election: c.e.name, Candidate: c.name, Position: c.w.noted(c.position), Why: text(why)})
}

// noted is a position as the history has it, which compares positions: those of two
// coordinators do not compare.
func (w *world) noted(position uint64) uint64 {
	if w.plan.Migrate {
		return 0
	}
	return position
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A term is a term as the world knows it.
type term struct {
	*elect.Term
	c       *candidate
	token   uint64
	at      uint64 // the position
	session backend.Session
	working bool // its function has not returned
	over    bool // a check has failed
	asked   bool // to resign, for certain
	era     int  // the log has gone back so often before it was won
	stale   bool // the log went back, and its place with it
	todo    chan Act
}

// lead is the work of a leader. Its own linger is part of it.
func (c *candidate) lead(ctx context.Context, et *elect.Term) error {
	t := c.won(et)
	defer t.done()
	// In Campaign the term outlives the candidate's context.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	if c.how.Ack {
		_ = t.Acknowledge(ctx) // fails with the term
		t.write(ctx)
	}
	hold, release := context.WithCancel(ctx)
	defer release()
	if c.how.Hold > 0 {
		defer time.AfterFunc(c.how.Hold, func() {
			if !c.w.isQuiet() {
				release()
			}
		}).Stop()
	}
	t.work(hold, ctx)
	if ctx.Err() != nil {
		t.linger()
	}
	return nil
}

func (w *world) isQuiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quiet
}

// linger goes on with the work, as if the end had not been noticed yet.
func (t *term) linger() {
	until, cancel := context.WithTimeout(context.Background(), t.c.how.Linger)
	defer cancel()
	t.work(until, context.Background())
	if t.c.how.Linger > 0 {
		t.write(context.Background())
	}
}

// work writes under ctx when it is told to, until the other context ends. That comes
// first where both are due: select would toss a coin, and no plan could be replayed.
func (t *term) work(until, ctx context.Context) {
	for until.Err() == nil {
		select {
		case <-until.Done():
		case do := <-t.todo:
			if do == Seal {
				t.seal(ctx)
			} else {
				t.write(ctx)
			}
		}
	}
}

// write writes the record of the election under guard.
func (t *term) write(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	v, err := t.Put(ctx, t.c.e.record(), strconv.AppendUint(nil, t.token, 10), backend.Any)
	t.c.w.mu.Lock()
	defer t.c.w.mu.Unlock()
	if err == nil {
		t.c.e.puts[t.putOf(v)] = t.token
	} else if errors.Is(err, backend.ErrVersion) {
		t.c.w.fail("guarded put", "%s asked for no version and was refused: %v", t.c.name, err)
	}
}

// putOf returns a version as the coordinator has it that has the record.
func (t *term) putOf(v backend.Version) put {
	switch t.c.client.mode {
	case Both: // versions carry their side in the lowest bit; see package migrate
		return put{int(v & 1), v >> 1}
	case New:
		return put{newSide, v}
	}
	return put{oldSide, v}
}

// won notes a term, and looks who else leads.
func (c *candidate) won(et *elect.Term) *term {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &term{
		Term: et, c: c, token: et.Token(), at: et.Member().Position, session: c.session,
		working: true, era: w.era, stale: c.stale, todo: make(chan Act, 1),
	}
	if c.client.ended {
		return t
	}
	if t.stale || c.e.deposed[t.at] { // perhaps before its answer came, which told the place too
		c.note(history.Deposed, nil)
	}
	w.log.Note(history.Event{Kind: history.Won, Election: c.e.name, Candidate: c.name, Position: w.noted(t.at), Token: t.token})
	w.lookAtWin(t)
	w.terms = append(w.terms, t)
	w.running.Go(func() {
		<-t.Context().Done()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lookAtEnd(t)
	})
	return t
}

// done says that the function returns.
func (t *term) done() {
	t.c.w.mu.Lock()
	defer t.c.w.mu.Unlock()
	t.working = false
}
