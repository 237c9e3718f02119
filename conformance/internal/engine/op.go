package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// An Op is a call of a session's method. The functions below return an Op for each method.
type Op struct {
	Name  string
	Needs Fault // the ability that the method needs; empty for none
	// call returns what the method returns, and a nil value if that is only an error.
	call func(ctx context.Context, s backend.Session) (value any, err error)
}

// Call makes the call, and returns its error alone.
func (op Op) Call(ctx context.Context, s backend.Session) error {
	_, err := op.call(ctx, s)
	return err
}

// OpOf returns an Op that calls f.
func OpOf(name string, f func(context.Context) error) Op {
	return Op{name, "", func(ctx context.Context, _ backend.Session) (any, error) { return nil, f(ctx) }}
}

func Join(line, value string) Op { return JoinTold(line, value, "") }

// JoinTold is Join that also tells of the record.
func JoinTold(line, value, record string) Op {
	return Op{"Join", "", func(ctx context.Context, s backend.Session) (any, error) { return s.Join(ctx, line, value, record) }}
}

func JoinShared(line, value string) Op {
	return Op{"JoinShared", Shares, func(ctx context.Context, s backend.Session) (any, error) { return s.JoinShared(ctx, line, value, "") }}
}

func Ahead(m backend.Member) Op {
	return Op{"Ahead of " + Show(m), "", func(ctx context.Context, s backend.Session) (any, error) { return s.Ahead(ctx, m) }}
}

func Gone(m backend.Member) Op {
	return Op{"Gone of " + Show(m), "", func(ctx context.Context, s backend.Session) (any, error) { return nil, s.Gone(ctx, m) }}
}

func WatchPlace(m backend.Member, after backend.Place) Op {
	return Op{"WatchPlace of " + Show(m), "", func(ctx context.Context, s backend.Session) (any, error) {
		p := after
		err := s.WatchPlace(ctx, m, &p)
		return p, err
	}}
}

func Leave(m backend.Member) Op {
	return Op{"Leave of " + Show(m), "", func(ctx context.Context, s backend.Session) (any, error) { return nil, s.Leave(ctx, m) }}
}

func Pin(m backend.Member, h backend.Header, at backend.Version) Op {
	what := fmt.Sprintf("Pin of %s at version %d", Show(m), at)
	return Op{what, Pins, func(ctx context.Context, s backend.Session) (any, error) { return nil, s.Pin(ctx, m, h, at) }}
}

func Line(line string) Op {
	return Op{"Line", "", func(ctx context.Context, s backend.Session) (any, error) { return s.Line(ctx, line) }}
}

func WatchLine(line string, after backend.Line) Op {
	return Op{"WatchLine", "", func(ctx context.Context, s backend.Session) (any, error) { return s.WatchLine(ctx, line, after) }}
}

func Append(line, value string) Op {
	return Op{"Append", Items, func(ctx context.Context, s backend.Session) (any, error) { return s.Append(ctx, line, value) }}
}

func RemoveItem(m, by backend.Member) Op {
	what := fmt.Sprintf("Remove of %s by %s", Show(m), Show(by))
	return Op{what, Items, func(ctx context.Context, s backend.Session) (any, error) { return nil, s.Remove(ctx, m, by) }}
}

func Free(items, claims string) Op {
	return Op{"Free", Items, func(ctx context.Context, s backend.Session) (any, error) { return s.Free(ctx, items, claims) }}
}

// Claim is for a claim whose value names the client.
func Claim(line, client string, item backend.Member) Op {
	return Op{"Claim of " + Show(item), Shares, func(ctx context.Context, s backend.Session) (any, error) {
		return s.Claim(ctx, line, client+"\n"+kit.Subject(item), "", item)
	}}
}

func Refresh() Op {
	return Op{"Refresh", "", func(ctx context.Context, s backend.Session) (any, error) { return nil, s.Refresh(ctx) }}
}

func Get(name string) Op {
	return Op{"Get", Records, func(ctx context.Context, s backend.Session) (any, error) { return s.Get(ctx, name) }}
}

func Put(name, value string, cond *backend.If) Op {
	return Op{"Put" + showIf(cond), Records, func(ctx context.Context, s backend.Session) (any, error) {
		return s.Put(ctx, name, []byte(value), cond)
	}}
}

func Delete(name string, cond *backend.If) Op {
	return Op{"Delete" + showIf(cond), Records, func(ctx context.Context, s backend.Session) (any, error) { return nil, s.Delete(ctx, name, cond) }}
}

func List(name string) Op {
	return Op{"List", Records, func(ctx context.Context, s backend.Session) (any, error) { return s.List(ctx, name) }}
}

func ReadAll(name string) Op {
	return Op{"ReadAll", Records, func(ctx context.Context, s backend.Session) (any, error) { return s.ReadAll(ctx, name) }}
}

func Watch(name string, after backend.Version) Op {
	return Op{"Watch", Records, func(ctx context.Context, s backend.Session) (any, error) { return s.Watch(ctx, name, after) }}
}

func Close() Op {
	return Op{"Close of the session", "", func(ctx context.Context, s backend.Session) (any, error) { return nil, s.Close(ctx) }}
}

// Ops returns a call of each method that talks to the coordinator, except for Close and
// for methods that the backend lacks. The calls are in the line of the trial and with m.
func (t *Trial) Ops(m backend.Member) []Op {
	return t.had(slices.Concat(t.Changes(m), t.Waits(m), []Op{
		Leave(m), Ahead(m), Line(t.Name), RemoveItem(m, m), Get(t.never()), Delete(t.Late(), nil), List(t.never()), ReadAll(t.never()),
	}))
}

// Changes returns those of Ops that create something. Put creates the record [Trial.Late]. Append
// creates an item in another line, because the item may come to stand later.
func (t *Trial) Changes(m backend.Member) []Op {
	return t.had([]Op{
		Join(t.Name, "late"), JoinShared(t.Name, "late"), Append(t.Name+"-items", "late"), Pin(m, backend.Header{Fence: 1}, backend.Absent), Put(t.Late(), "late", &backend.If{Member: m}),
	})
}

// Waits returns those of Ops that block. They wait for something that does not happen.
func (t *Trial) Waits(m backend.Member) []Op {
	return t.had([]Op{Gone(m), WatchLine(t.never(), backend.Line{}), Watch(t.never(), backend.Absent)})
}

// Late returns the name of the record that the Put of [Trial.Changes] would write.
func (t *Trial) Late() string { return t.Name + "-late" }

func (t *Trial) never() string { return t.Name + "-never" }

// WroteNothing checks that the Put of [Trial.Changes] has not been done.
func (c *Client) WroteNothing(what string) {
	if c.t.Can(Records) && c.Get(c.t.Late()).Version != backend.Absent {
		c.t.Never("a Put %s was done", what)
	}
}

func (t *Trial) had(ops []Op) []Op {
	return slices.DeleteFunc(ops, func(op Op) bool { return op.Needs != "" && !t.Can(op.Needs) })
}
