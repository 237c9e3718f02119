package kit

import (
	"cmp"
	"context"
	"errors"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit/backoff"
)

// An Adapter is a session as callers have it: the driver's session, behind what is the same for
// all drivers. Each method of the contract that takes a context, except Close, is a [call].
type Adapter struct {
	Session // the driver's
}

func (a *Adapter) Join(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return call(ctx, a, "join", line, a.joinable(value, record), func(ctx context.Context) (backend.Joined, error) {
		return a.Session.Join(ctx, line, value, record)
	})
}

func (a *Adapter) JoinShared(ctx context.Context, line, value, record string) (backend.Joined, error) {
	return call(ctx, a, "join", line, cmp.Or(a.shares(ctx), a.joinable(value, record)), func(ctx context.Context) (backend.Joined, error) {
		return a.Session.JoinShared(ctx, line, value, record)
	})
}

// shares returns why the session has no shared members, or nil; see [NoShares]. JoinShared and Claim fail with that before they look at
// what they are given. So Claim of the zero item asks whether there are shared members, without a request.
func (a *Adapter) shares(ctx context.Context) error {
	if s, ok := a.Session.(interface{ Shares() error }); ok {
		if err := s.Shares(); err != nil {
			return a.life().explain(ctx, err)
		}
	}
	return nil
}

// joinable returns what is wrong with the value of a member, or with the name of the record that
// Join is to return.
func (a *Adapter) joinable(value, record string) error {
	invalid := backend.CheckValue(value)
	if record != "" {
		invalid = cmp.Or(invalid, a.life().sessions.CheckName(record))
	}
	return invalid
}

func (a *Adapter) Ahead(ctx context.Context, m backend.Member) (backend.Place, error) {
	return call(ctx, a, "ahead", m.Line, nil, func(ctx context.Context) (backend.Place, error) { return a.Session.Ahead(ctx, m) })
}

// WatchPlace does what [call] does with fewer frames, because a waiter keeps all of them: its stack is most
// of what it costs.
func (a *Adapter) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	l := a.life()
	err := cmp.Or(l.Usable(ctx), l.sessions.CheckName(m.Line))
	if err == nil {
		bound, release := l.Bind(ctx)
		defer release()
		if err = a.Session.WatchPlace(bound, m, p); err == nil {
			return nil
		}
		err = l.explain(bound, err)
	}
	return l.sessions.Scheme.Wrap("watch place", m.Line, err)
}

func (a *Adapter) Outlived(ctx context.Context, record, line string) (bool, error) {
	return call(ctx, a, "outlived", line, a.life().sessions.CheckName(record), func(ctx context.Context) (bool, error) {
		return a.Session.Outlived(ctx, record, line)
	})
}

func (a *Adapter) Gone(ctx context.Context, m backend.Member) error {
	return a.run(ctx, "gone", m.Line, nil, func(ctx context.Context) error { return a.Session.Gone(ctx, m) })
}

func (a *Adapter) Leave(ctx context.Context, m backend.Member) error {
	return a.run(ctx, "leave", m.Line, nil, func(ctx context.Context) error { return a.Session.Leave(ctx, m) })
}

func (a *Adapter) Line(ctx context.Context, line string) (backend.Line, error) {
	return call(ctx, a, "line", line, nil, func(ctx context.Context) (backend.Line, error) { return a.Session.Line(ctx, line) })
}

func (a *Adapter) Head(ctx context.Context, line string) (backend.Line, error) {
	return call(ctx, a, "head", line, nil, func(ctx context.Context) (backend.Line, error) { return a.Session.Head(ctx, line) })
}

func (a *Adapter) Lines(ctx context.Context) (map[string]int, error) {
	return nameless(ctx, a, "lines", "", nil, func(ctx context.Context) (map[string]int, error) { return a.Session.Lines(ctx) })
}

func (a *Adapter) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	return nameless(ctx, a, "survey", "", nil, func(ctx context.Context) (map[string]backend.Standing, error) { return a.Session.Survey(ctx) })
}

func (a *Adapter) Imported(ctx context.Context, line string) ([]backend.Member, error) {
	return call(ctx, a, "imported", line, nil, func(ctx context.Context) ([]backend.Member, error) { return a.Session.Imported(ctx, line) })
}

func (a *Adapter) WatchLine(ctx context.Context, line string, after backend.Line) (backend.Line, error) {
	return call(ctx, a, "watch line", line, nil, func(ctx context.Context) (backend.Line, error) { return a.Session.WatchLine(ctx, line, after) })
}

func (a *Adapter) Append(ctx context.Context, line, value string) (backend.Member, error) {
	return call(ctx, a, "append", line, backend.CheckValue(value), func(ctx context.Context) (backend.Member, error) { return a.Session.Append(ctx, line, value) })
}

func (a *Adapter) Remove(ctx context.Context, m, by backend.Member) error {
	invalid := backend.CheckName(by.Line)
	return a.run(ctx, "remove", m.Line, invalid, func(ctx context.Context) error { return a.Session.Remove(ctx, m, by) })
}

func (a *Adapter) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	return call(ctx, a, "free", items, backend.CheckName(claims), func(ctx context.Context) (backend.Member, error) { return a.Session.Free(ctx, items, claims) })
}

func (a *Adapter) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	invalid := cmp.Or(a.shares(ctx), CheckClaim(value, item), a.joinable(value, record))
	return call(ctx, a, "claim", line, invalid, func(ctx context.Context) (backend.Joined, error) {
		return a.Session.Claim(ctx, line, value, record, item)
	})
}

func (a *Adapter) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	return a.run(ctx, "pin", m.Line, backend.CheckRecord(h.Encode()), func(ctx context.Context) error { return a.Session.Pin(ctx, m, h, at) })
}

// Refresh has no name: it is about all that the session reads.
func (a *Adapter) Refresh(ctx context.Context) error {
	_, err := nameless(ctx, a, "refresh", "", nil, func(ctx context.Context) (struct{}, error) { return struct{}{}, a.Session.Refresh(ctx) })
	return err
}

func (a *Adapter) Get(ctx context.Context, name string) (backend.Record, error) {
	return call(ctx, a, "get", name, nil, func(ctx context.Context) (backend.Record, error) { return a.Session.Get(ctx, name) })
}

func (a *Adapter) Put(ctx context.Context, name string, value []byte, cond *backend.If) (backend.Version, error) {
	return call(ctx, a, "put", name, backend.CheckRecord(value), func(ctx context.Context) (backend.Version, error) { return a.Session.Put(ctx, name, value, cond) })
}

func (a *Adapter) Delete(ctx context.Context, name string, cond *backend.If) error {
	return a.run(ctx, "delete", name, nil, func(ctx context.Context) error { return a.Session.Delete(ctx, name, cond) })
}

func (a *Adapter) List(ctx context.Context, dir string) ([]string, error) {
	return call(ctx, a, "list", dir, nil, func(ctx context.Context) ([]string, error) { return a.Session.List(ctx, dir) })
}

func (a *Adapter) ReadAll(ctx context.Context, dir string) ([]backend.Record, error) {
	return call(ctx, a, "read all", dir, nil, func(ctx context.Context) ([]backend.Record, error) { return a.Session.ReadAll(ctx, dir) })
}

func (a *Adapter) Watch(ctx context.Context, name string, after backend.Version) (backend.Record, error) {
	return call(ctx, a, "watch", name, nil, func(ctx context.Context) (backend.Record, error) { return a.Session.Watch(ctx, name, after) })
}

// call does for each call of the contract what is the same for all drivers. The context of f ends
// when ctx or the session does. If f fails, call returns the zero value and an error that names op
// and name. It returns such an error without calling f if the session or ctx has ended, if name is
// not allowed, or if invalid says that another argument is not.
func call[T any](ctx context.Context, a *Adapter, op, name string, invalid error, f func(ctx context.Context) (T, error)) (T, error) {
	return nameless(ctx, a, op, name, cmp.Or(a.life().sessions.CheckName(name), invalid), f)
}

// nameless is call without the check of the name.
func nameless[T any](ctx context.Context, a *Adapter, op, name string, invalid error, f func(ctx context.Context) (T, error)) (T, error) {
	var none T
	l := a.life()
	err := cmp.Or(l.Usable(ctx), invalid)
	if err == nil {
		var v T
		ctx, release := l.Bind(ctx)
		defer release()
		if v, err = f(ctx); err == nil {
			return v, nil
		}
		err = l.explain(ctx, err)
	}
	return none, l.sessions.Scheme.Wrap(op, name, err)
}

// explain turns err, with which a call has failed, into an error of the contract.
func (l *Life) explain(ctx context.Context, err error) error {
	if l.rules.Explain == nil {
		return err
	}
	return l.rules.Explain(ctx, err)
}

// run is call for a method of the contract that returns only an error.
func (a *Adapter) run(ctx context.Context, op, name string, invalid error, f func(ctx context.Context) error) error {
	_, err := call(ctx, a, op, name, invalid, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return err
}

// Usable returns nil if a request can be sent. If the session or ctx has ended, it returns why.
func (l *Life) Usable(ctx context.Context) error {
	if err := l.Alive(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Bind returns a context that ends when ctx or the session does, with the cause of that one.
// The caller must call the func when it is done. Bind starts no goroutine.
func (l *Life) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(context.Cause(l.ctx)) }
	if l.ctx.Err() != nil {
		end()
	}
	stop := context.AfterFunc(l.ctx, end)
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Await runs f in a goroutine of the session, and returns what it returns. If ctx ends first, Await returns the cause of ctx, and
// f goes on: it may have sent what must be seen through. f gets no context for that reason; it ends when the session does.
func Await[T any](ctx context.Context, l *Life, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	var none T
	done := make(chan result, 1)
	if !l.Go(func() {
		v, err := f()
		done <- result{v, err}
	}) {
		return none, l.Ended()
	}
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// Retry calls f until it succeeds, or fails with an error that does not pass by itself: passing
// returns false for it. It pauses between the calls. If ctx ends in a pause or in a later call, it
// returns [backoff.Backoff.Cause]: the cause of ctx, and why it was called again.
func Retry[T any](ctx context.Context, pause backoff.Backoff, passing func(error) bool, f func(ctx context.Context) (T, error)) (T, error) {
	for later := false; ; later = true {
		v, err := f(ctx)
		if later && err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) && !errors.Is(err, backend.ErrUnavailable) {
			return v, pause.Cause(ctx) // err does not say what has taken so long
		}
		if err == nil || !passing(err) {
			return v, err
		}
		if err := pause.After(ctx, err); err != nil {
			var none T
			return none, err
		}
	}
}

// ReadEach is [backend.Session] ReadAll for a coordinator that cannot be asked for the values of a
// folder: it reads each record that List names, one after the other.
func ReadEach(ctx context.Context, s backend.Session, dir string) ([]backend.Record, error) {
	names, err := s.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	var records []backend.Record
	for _, name := range names {
		r, err := s.Get(ctx, name)
		if err != nil {
			return nil, err
		}
		if r.Version != backend.Absent { // it was deleted meanwhile
			records = append(records, r)
		}
	}
	return records, nil
}

// Notify puts a value into c. If there is no room for one, somebody is about to be told anyway.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
