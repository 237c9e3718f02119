package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
)

// An Op is a call of a session's method, of which only the error counts. The functions below
// return an Op for each method.
type Op struct {
	Name  string
	Needs Fault // the ability that the method needs; empty for none
	Call  func(ctx context.Context, s backend.Session) error
}

func Join(line, value string) Op {
	return valued("Join", "", func(ctx context.Context, s backend.Session) (backend.Member, error) { return s.Join(ctx, line, value) })
}

func Ahead(m backend.Member) Op {
	return valued("Ahead of "+Show(m), "", func(ctx context.Context, s backend.Session) (backend.Place, error) { return s.Ahead(ctx, m) })
}

func Gone(m backend.Member) Op {
	return Op{"Gone of " + Show(m), "", func(ctx context.Context, s backend.Session) error { return s.Gone(ctx, m) }}
}

func Leave(m backend.Member) Op {
	return Op{"Leave of " + Show(m), "", func(ctx context.Context, s backend.Session) error { return s.Leave(ctx, m) }}
}

func Pin(m backend.Member, h backend.Header, at backend.Version) Op {
	what := fmt.Sprintf("Pin of %s at version %d", Show(m), at)
	return Op{what, Pins, func(ctx context.Context, s backend.Session) error { return s.Pin(ctx, m, h, at) }}
}

func Line(line string) Op {
	return valued("Line", "", func(ctx context.Context, s backend.Session) (backend.Line, error) { return s.Line(ctx, line) })
}

func Joined(line string) Op {
	return Op{"Joined", "", func(ctx context.Context, s backend.Session) error { return s.Joined(ctx, line) }}
}

func Get(name string) Op {
	return valued("Get", Records, func(ctx context.Context, s backend.Session) (backend.Record, error) { return s.Get(ctx, name) })
}

func Put(name, value string, cond *backend.If) Op {
	return valued("Put"+showIf(cond), Records, func(ctx context.Context, s backend.Session) (backend.Version, error) {
		return s.Put(ctx, name, []byte(value), cond)
	})
}

func Delete(name string, cond *backend.If) Op {
	return Op{"Delete" + showIf(cond), Records, func(ctx context.Context, s backend.Session) error { return s.Delete(ctx, name, cond) }}
}

func List(name string) Op {
	return valued("List", Records, func(ctx context.Context, s backend.Session) ([]string, error) { return s.List(ctx, name) })
}

func Watch(name string, after backend.Version) Op {
	return valued("Watch", Records, func(ctx context.Context, s backend.Session) (backend.Record, error) { return s.Watch(ctx, name, after) })
}

func Close() Op {
	return Op{"Close of the session", "", func(ctx context.Context, s backend.Session) error { return s.Close(ctx) }}
}

// valued returns an Op for a method that also returns a value.
func valued[T any](name string, needs Fault, call func(context.Context, backend.Session) (T, error)) Op {
	return Op{name, needs, func(ctx context.Context, s backend.Session) error {
		_, err := call(ctx, s)
		return err
	}}
}

// value makes a call that must succeed soon, and returns its value.
func value[T any](c *Client, name string, call func(context.Context, backend.Session) (T, error)) (v T) {
	c.Do(Op{Name: name, Call: func(ctx context.Context, s backend.Session) (err error) {
		v, err = call(ctx, s)
		return err
	}})
	return v
}

// Ops returns a call of each method that talks to the coordinator, except for Close and
// for methods that the backend lacks. The calls are in the line of the trial and with m.
func (t *Trial) Ops(m backend.Member) []Op {
	return t.had(slices.Concat(t.Changes(m), t.Waits(m), []Op{
		Leave(m), Ahead(m), Line(t.Name), Get(t.never()), Delete(t.Late(), nil), List(t.never()),
	}))
}

// Changes returns those of Ops that create something. Put would create the record [Trial.Late].
func (t *Trial) Changes(m backend.Member) []Op {
	return t.had([]Op{
		Join(t.Name, "late"), Pin(m, backend.Header{Fence: 1}, backend.Absent), Put(t.Late(), "late", &backend.If{Member: m}),
	})
}

// Waits returns those of Ops that block. They wait for something that does not happen.
func (t *Trial) Waits(m backend.Member) []Op {
	return t.had([]Op{Gone(m), Joined(t.never()), Watch(t.never(), backend.Absent)})
}

// Late returns the name of the record that the Put of [Trial.Changes] would write.
func (t *Trial) Late() string { return t.Name + "-late" }

func (t *Trial) never() string { return t.Name + "-never" }

// WroteNothing checks that the Put of [Trial.Changes] has not been done.
func (c *Client) WroteNothing(what string) {
	if c.t.Can(Records) && c.Get(c.t.Late()).Version != backend.Absent {
		c.t.Fatalf("a Put %s was done", what)
	}
}

func (t *Trial) had(ops []Op) []Op {
	return slices.DeleteFunc(ops, func(op Op) bool { return op.Needs != "" && !t.Can(op.Needs) })
}
