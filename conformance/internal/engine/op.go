package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// An Op is a call of a session's method of which the error alone is of interest. It has
// the method's name.
type Op struct {
	Name  string
	Needs Fault // an ability; empty for none
	Call  func(ctx context.Context, s backend.Session) error
}

func Join(line, value string) Op {
	return Op{"Join", "", func(ctx context.Context, s backend.Session) error {
		_, err := s.Join(ctx, line, value)
		return err
	}}
}

func Ahead(m backend.Member) Op {
	return Op{"Ahead of " + Show(m), "", func(ctx context.Context, s backend.Session) error {
		_, err := s.Ahead(ctx, m)
		return err
	}}
}

func Gone(m backend.Member) Op {
	return Op{"Gone of " + Show(m), "", func(ctx context.Context, s backend.Session) error { return s.Gone(ctx, m) }}
}

func Leave(m backend.Member) Op {
	return Op{"Leave of " + Show(m), "", func(ctx context.Context, s backend.Session) error { return s.Leave(ctx, m) }}
}

func Pin(m backend.Member, h backend.Header, at backend.Version) Op {
	return Op{fmt.Sprintf("Pin of %s at version %d", Show(m), at), Pins, func(ctx context.Context, s backend.Session) error {
		return s.Pin(ctx, m, h, at)
	}}
}

func Line(line string) Op {
	return Op{"Line", "", func(ctx context.Context, s backend.Session) error {
		_, err := s.Line(ctx, line)
		return err
	}}
}

func Joined(line string) Op {
	return Op{"Joined", "", func(ctx context.Context, s backend.Session) error { return s.Joined(ctx, line) }}
}

func Get(name string) Op {
	return Op{"Get", Records, func(ctx context.Context, s backend.Session) error {
		_, err := s.Get(ctx, name)
		return err
	}}
}

func Put(name, value string, cond *backend.If) Op {
	return Op{"Put" + showIf(cond), Records, func(ctx context.Context, s backend.Session) error {
		_, err := s.Put(ctx, name, []byte(value), cond)
		return err
	}}
}

func Delete(name string, cond *backend.If) Op {
	return Op{"Delete" + showIf(cond), Records, func(ctx context.Context, s backend.Session) error { return s.Delete(ctx, name, cond) }}
}

func List(name string) Op {
	return Op{"List", Records, func(ctx context.Context, s backend.Session) error {
		_, err := s.List(ctx, name)
		return err
	}}
}

func Watch(name string, after backend.Version) Op {
	return Op{"Watch", Records, func(ctx context.Context, s backend.Session) error {
		_, err := s.Watch(ctx, name, after)
		return err
	}}
}

func Close() Op {
	return Op{"Close of the session", "", func(ctx context.Context, s backend.Session) error { return s.Close(ctx) }}
}

// Ops returns a call of each method that talks to the coordinator, except for Close and
// for those that the backend lacks, in the line of the trial and with m.
func (t *Trial) Ops(m backend.Member) []Op {
	return t.had(slices.Concat(t.Changes(m), t.Waits(m), []Op{
		Leave(m), Ahead(m), Line(t.Name), Get(t.never()), Delete(t.Late(), nil), List(t.never()),
	}))
}

// Changes are those of Ops that make something come into being. Put would write the record
// that Late names.
func (t *Trial) Changes(m backend.Member) []Op {
	return t.had([]Op{
		Join(t.Name, "late"), Pin(m, backend.Header{Fence: 1}, backend.Absent), Put(t.Late(), "late", &backend.If{Member: m}),
	})
}

// Waits are those of Ops that wait, for what does not happen.
func (t *Trial) Waits(m backend.Member) []Op {
	return t.had([]Op{Gone(m), Joined(t.never()), Watch(t.never(), backend.Absent)})
}

// Late is the name of a record that no rule writes.
func (t *Trial) Late() string { return t.Name + "-late" }

func (t *Trial) never() string { return t.Name + "-never" }

// WroteNothing checks that no Put of Changes was done.
func (c *Client) WroteNothing(what string) {
	if c.t.Can(Records) && c.Get(c.t.Late()).Version != backend.Absent {
		c.t.Fatalf("a Put %s was done", what)
	}
}

func (t *Trial) had(ops []Op) []Op {
	return slices.DeleteFunc(ops, func(op Op) bool { return op.Needs != "" && !t.Can(op.Needs) })
}
