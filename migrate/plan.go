package migrate

import (
	"context"
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate/internal/composite"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

// A Step is what an operator does to a migration.
type Step string

// The steps; each is a method of [Backend].
const (
	Begin   Step = "begin"
	Cutover Step = "cutover"
	Finish  Step = "finish"
	Abort   Step = "abort"
)

// A Plan is what a step would do.
type Plan struct {
	Status
	// Changes is false if the step is done already, or would only wait, look or carry over records that a cutover has left behind.
	Changes bool `json:"changes"`
	// Does says, for people, what the step would do.
	Does string `json:"does"`
}

// Plan says what a step would do, and changes nothing. If the step itself would be refused, it
// fails as the step would. It blocks for about four round trips to each coordinator.
func (b *Backend) Plan(ctx context.Context, step Step, election string) (Plan, error) {
	p, err := b.plan(ctx, step, election)
	return p, composite.Wrap(string(step), election, err)
}

func (b *Backend) plan(ctx context.Context, step Step, election string) (Plan, error) {
	v, err := b.look(ctx, election)
	if err != nil {
		return Plan{}, err
	}
	var p Plan
	if p.Status, err = b.status(ctx, election, v); err != nil {
		return Plan{}, err
	}
	decide, known := map[Step]decision{Begin: b.begin(), Cutover: unlessPaused(b.route.Cutover), Finish: b.route.Finish, Abort: unlessPaused(b.route.Abort)}[step]
	if !known {
		return Plan{}, fmt.Errorf("%w step %q; there are %s, %s, %s and %s", backend.ErrInvalid, step, Begin, Cutover, Finish, Abort)
	}
	r, err := decide(v.line)
	if err == nil && step == Abort && r.Act == protocol.EndMove {
		_, err = protocol.TooLate(b.route.To)
	}
	if err == nil && step == Finish && r.Act == protocol.Nothing {
		if err = b.nobodyLeft(ctx, election, v); err == nil && v.fromErr == nil {
			err = b.unclear(ctx, election, v, true)
		}
	}
	if err == nil && (step == Cutover || step == Finish) && v.fromErr == nil {
		err = b.chosen(ctx, v)
	}
	if phase, _ := b.phase(v); err == nil && step == Cutover && phase == protocol.Begun {
		err = b.unclear(ctx, election, v, false)
	}
	if err != nil {
		return Plan{}, err
	}
	p.Changes = r.Act != protocol.Nothing && r.Act != protocol.Wait
	p.Does = does(step, p, v)
	return p, nil
}

// does says what the step would do from where the migration is.
func does(step Step, p Plan, v view) string {
	to := v.line[protocol.To]
	switch {
	case !p.Changes && step == Cutover && p.Phase == Asked:
		return "wait, as the leader has been asked already: " + waitsFor(p.Status)
	case !p.Changes && p.Phase == Moved:
		return fmt.Sprintf("carry over records that the cutover has left on %s, if there are any", p.From)
	case !p.Changes:
		return "do nothing: it is done already"
	case step == Begin && to.Header.Sealed != "" && len(to.Members) > 0:
		return fmt.Sprintf("make the seal at the head of the line on %s the gate", p.To)
	case step == Begin:
		return fmt.Sprintf("put a gate at the head of the line on %s, behind which everybody waits who is started there", p.To)
	case step == Cutover && p.Phase == Begun && p.Ready:
		return fmt.Sprintf("ask the leader, %s, to seal the election on %s for good, and to lead on by %s alone", p.OnFrom[0], p.From, p.To)
	case step == Cutover && p.Phase == Begun:
		return fmt.Sprintf("ask the next leader with a place on both to seal the election on %s for good; there is none now: %s", p.From, waitsFor(p.Status))
	case step == Abort && p.Phase == Aborted && v.line[protocol.From].Header.Migration.Step == protocol.StepReopened:
		return fmt.Sprintf("take away the seal on %s", p.From)
	case step == Abort && p.Phase == Aborted:
		return fmt.Sprintf("take away the gate on %s", p.To)
	case step == Abort && p.Phase == Conflict:
		return fmt.Sprintf("take away the gate on %s and forget this migration; the opposite one goes on", p.To)
	case step == Abort && p.Phase == Aliased:
		return fmt.Sprintf("take away the gate on %s, which is %s too, and forget this migration", p.To, p.From)
	case step == Abort && (protocol.Route{From: p.From, To: p.To}).Opposed(v.line[protocol.From].Header, to.Header):
		return fmt.Sprintf("take away the seal on %s, and leave that on %s", p.From, p.To)
	case step == Abort && p.Phase == Elsewhere:
		return fmt.Sprintf("note on %s where the election went, and take away the gate", p.To)
	case step == Abort:
		return fmt.Sprintf("forbid the cutover, note on %s that the election stays on %s, and take away the gate", p.To, p.From)
	}
	return fmt.Sprintf("take away the gate on %s, which a cutover has left standing, and note that the election is there", p.To)
}
