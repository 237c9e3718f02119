package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/succession-dev/succession/backend"
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
	// Changes is false where the step is done already, or has only to wait or to look.
	Changes bool `json:"changes"`
	// Does says, for people, what the step would do.
	Does string `json:"does"`
}

// Plan says what a step would do, and changes nothing. It fails as the step itself
// would, where that would be refused. It blocks for about four round trips to each
// coordinator.
func (b *Backend) Plan(ctx context.Context, step Step, election string) (Plan, error) {
	p, err := b.plan(ctx, step, election)
	return p, wrap(string(step), election, err)
}

func (b *Backend) plan(ctx context.Context, step Step, election string) (Plan, error) {
	k, err := b.look(ctx, election)
	if err != nil {
		return Plan{}, err
	}
	var p Plan
	if p.Status, err = b.status(ctx, election, k); err != nil {
		return Plan{}, err
	}
	dry := k
	for sd, half := range k.half {
		if half != nil {
			dry.half[sd] = dryRun{half}
		}
	}
	switch step {
	case Begin:
		_, err = b.begin(ctx, election, "", dry)
	case Cutover:
		_, err = b.cutover(ctx, election, dry)
	case Finish:
		_, err = b.ended(ctx, election, dry)
	case Abort:
		_, err = b.abort(ctx, election, dry)
	default:
		err = fmt.Errorf("%w step %q; there are %s, %s, %s and %s", backend.ErrInvalid, step, Begin, Cutover, Finish, Abort)
	}
	p.Changes = errors.Is(err, errDry)
	if err != nil && !p.Changes {
		return Plan{}, err
	}
	p.Does = does(step, p, k)
	return p, nil
}

// does says what the step would do from where the migration is.
func does(step Step, p Plan, k look) string {
	to := k.line[sideTo]
	switch {
	case !p.Changes && step == Cutover && p.Phase == Asked:
		return "wait, as the leader has been asked already: " + waitsFor(p.Status)
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
	case step == Abort && p.Phase == Aborted:
		return fmt.Sprintf("take away the gate on %s", p.To)
	case step == Abort && p.Phase == Conflict:
		return fmt.Sprintf("take away the gate on %s and forget this migration; the opposite one goes on", p.To)
	case step == Abort && p.Phase == Elsewhere:
		return fmt.Sprintf("note on %s where the election went, and take away the gate", p.To)
	case step == Abort:
		return fmt.Sprintf("forbid the cutover, note on %s that the election stays on %s, and take away the gate", p.To, p.From)
	}
	return fmt.Sprintf("take away the gate on %s, which a cutover has left standing, and note that the election is there", p.To)
}

// dryRun is a session whose writes all fail with errDry: the first that a step attempts
// shows that it would change something.
type dryRun struct{ backend.Session }

var errDry = errors.New("a dry run changes nothing")

func (dryRun) Join(context.Context, string, string) (backend.Member, error) {
	return backend.Member{}, errDry
}

func (dryRun) Leave(context.Context, backend.Member) error { return errDry }

func (dryRun) Pin(context.Context, backend.Member, backend.Header, backend.Version) error {
	return errDry
}

func (dryRun) Put(context.Context, string, []byte, *backend.If) (backend.Version, error) {
	return 0, errDry
}

func (dryRun) Delete(context.Context, string, *backend.If) error { return errDry }
