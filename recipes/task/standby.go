package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/recipes/internal/recipe"
	"github.com/succession-dev/succession/recipes/record"
)

// A Standby is a machine's handle on a set of tasks, each of which one machine runs while others
// stand by. It is safe for concurrent use. A machine that is to run several tasks at the same time
// calls Hot or Cold several times.
type Standby struct {
	b    backend.Backend
	name string
	o    elect.Options
	idle *elect.Election // the line of those that are cold and run nothing
	err  error           // what is wrong with the name or the options
}

var aStandby = recipe.Recipe{Package: "task", Owner: naming.Standby}

// NewStandby returns a handle on the tasks under the given name on b. It does not block and does
// not talk to the coordinator. If the name or an option is not allowed, every call fails with
// [backend.ErrInvalid]; where the backend has no records, with [errors.ErrUnsupported]. The caller
// still has to close b.
//
// The options are those of an election: ID says who this machine is, and Trace is told of the steps
// in each line that the machine stands in. o may be nil.
func NewStandby(b backend.Backend, name string, o *elect.Options) *Standby {
	s := &Standby{b: b, name: name, o: *aStandby.Options(name, o), err: cmp.Or(aStandby.CheckName(name), o.Check())}
	idle := s.o
	idle.History = 0 // a turn to look for a task is no term
	s.idle = elect.New(b, name+naming.Idle, &idle)
	return s
}

// A State says whether a task is to run.
type State string

// The states of a task. A task that has never been started or stopped has none.
const (
	Started  State = "started"  // it is to run
	Stopped  State = "stopped"  // Stop has stopped it
	Finished State = "finished" // the function that ran it has returned nil
)

var (
	// ErrStopped is the cause of the context of a run whose task was stopped.
	ErrStopped = errors.New("the task was stopped")
	// ErrConfigured is the cause of the context of a run whose task has got another configuration.
	ErrConfigured = errors.New("the task has another configuration")
)

// A definition is the record of a task.
type definition struct {
	State  State  `json:"state"`
	Config string `json:"config,omitempty"`
	// Starts is how often the task was started. A machine that has heard of a Stop no sooner than of
	// the Start behind it knows by this number that its run is to end.
	Starts uint64 `json:"starts,omitempty"`
}

// Start says that the task is to run. It blocks for about three round trips, and while the
// coordinator cannot be reached it tries on until ctx ends. To start a task that is started changes
// nothing.
//
// The name of a task is one segment of a name: see [backend.CheckName].
func (s *Standby) Start(ctx context.Context, task string) error {
	err := s.define(ctx, task, func(d *definition) {
		if d.State != Started {
			d.State = Started
			d.Starts++
		}
	})
	if err != nil {
		return err
	}
	// The news wakes the machine that looks for a task to run.
	return insist(ctx, func() error {
		se, err := s.b.Session(ctx)
		if err == nil {
			_, err = se.Put(ctx, s.news(), []byte(task), nil)
		}
		return err
	})
}

// Stop says that the task is not to run. The context of its run ends, with the cause [ErrStopped],
// also if Start follows at once. Stop does not wait for that: see [Standby.Status]. It blocks for
// about two round trips, and while the coordinator cannot be reached it tries on until ctx ends.
func (s *Standby) Stop(ctx context.Context, task string) error {
	return s.define(ctx, task, func(d *definition) { d.State = Stopped })
}

// Configure gives the task a configuration, which every run of it has ([Run.Config]): UTF-8 of at most
// [backend.MaxRecord] / 8 bytes. It stays when the task is stopped and started. A run with another
// configuration ends, with the cause [ErrConfigured], and the next machine in line begins.
// Configure blocks as Stop does.
func (s *Standby) Configure(ctx context.Context, task, config string) error {
	if len(config) > backend.MaxRecord/8 || !utf8.ValidString(config) {
		return fmt.Errorf("task: %w configuration of %q: it has %d bytes; at most %d of UTF-8 are possible", backend.ErrInvalid, task, len(config), backend.MaxRecord/8)
	}
	return s.define(ctx, task, func(d *definition) { d.Config = config })
}

// Move asks the machine that runs the task to hand it on: its run ends, with the cause
// [elect.ErrAsked], the next machine in line begins, and this one stands at the end again. Move
// returns the ID of the machine that was asked, and does not wait until it has handed on. To take a
// machine off for good, stop its process. It fails with [elect.ErrNoLeader] if nobody runs the
// task, or if it is stopped; see [operate.Operator.AskToResign].
func (s *Standby) Move(ctx context.Context, task string) (id string, err error) {
	if err := s.check(task); err != nil {
		return "", err
	}
	// The first in line of a task that is stopped only waits.
	e, err := record.New(s.b, s.definition(task), record.JSON[definition]()).Get(ctx)
	if err != nil {
		return "", needsRecords(err)
	}
	if e.Value.State != Started {
		return "", fmt.Errorf("task: %s is to be started before it can move: %w", task, elect.ErrNoLeader)
	}
	l, err := operate.New(s.b, s.line(task), s.o.ID).AskToResign(ctx, nil)
	return l.ID, err
}

// define writes the record of the task as change makes it, also over a record that cannot be
// understood. It names the version, so that a request that arrives late does not undo a later call.
func (s *Standby) define(ctx context.Context, task string, change func(*definition)) error {
	if err := s.check(task); err != nil {
		return err
	}
	return insist(ctx, func() error {
		se, err := s.b.Session(ctx)
		if err != nil {
			return err
		}
		for refreshed := false; ; refreshed = true {
			r, err := se.Get(ctx, s.definition(task))
			if err != nil {
				return needsRecords(err)
			}
			was, damaged := decode[definition](r)
			is := was
			if change(&is); damaged != nil || is != was {
				_, err = se.Put(ctx, r.Name, encode(is), &backend.If{Version: r.Version})
				return err
			}
			if refreshed {
				return nil
			}
			if err := se.Refresh(ctx); err != nil { // the server that was asked may lag behind
				return err
			}
		}
	})
}

// These names stand beside each other: no line lies below another one, and the names that belong to
// the line of one task never belong to another task.
func (s *Standby) folder() string                { return s.name + naming.Tasks }
func (s *Standby) definition(task string) string { return s.folder() + "/" + task }
func (s *Standby) position(task string) string   { return s.name + naming.Positions + "/" + task }
func (s *Standby) line(task string) string       { return s.name + naming.Run + task }
func (s *Standby) news() string                  { return s.name + naming.News }

// election returns the line of the machines that run the task, or stand by.
func (s *Standby) election(task string) *elect.Election { return elect.New(s.b, s.line(task), &s.o) }

func (s *Standby) check(task string) error {
	bad := func(why string) error {
		return fmt.Errorf("task: %w name of a task %q: %s", backend.ErrInvalid, task, why)
	}
	switch {
	case s.err != nil:
		return s.err
	case task == "":
		return bad("it is empty")
	case strings.Contains(task, "/"):
		return bad("it has a slash; use a hyphen or a dot")
	}
	if err := cmp.Or(backend.CheckName(s.position(task)), naming.CheckElection(s.line(task), s.o.History > 0)); err != nil {
		return bad(err.Error())
	}
	return nil
}

// needsRecords says what to do if the backend has no records.
func needsRecords(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("task: this backend has no records, which say what is to run; use package elect, or another coordinator: %w", err)
	}
	return err
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers, strings and times of this century always marshal
	}
	return b
}

// decode reads a record of this package. A record that does not exist, or was not read, gives the
// zero value.
func decode[T any](r backend.Record) (v T, err error) {
	if r.Version <= 0 {
		return v, nil
	}
	if v, err = record.JSON[T]().Decode(r.Value); err != nil {
		err = fmt.Errorf("task: record %s: %w: %w", r.Name, record.ErrDecode, err)
	}
	return v, err
}
