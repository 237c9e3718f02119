//go:build unix

package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/run/child"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/value"
	"github.com/succession-dev/succession/spread"
)

// A runner is one process that wants to run its command as a leader, or with another right. One
// goroutine owns it.
type runner struct {
	o       runOptions
	url     string
	bound   func(context.Context) (context.Context, context.CancelFunc) // of --timeout
	name    string
	path    string
	argv    []string // nil if there is no command
	signals chan os.Signal
	report  *reporter
	server  *server // nil without --serve

	since time.Time     // when it began to wait for its turn
	grace time.Duration // for the present campaign and its term
	ttl   time.Duration // of the session of that
	after *after        // the hook of --on-lost, once it has begun in the term
	led   bool          // it has led before
	// leaving is the signal that asked this process to end, if one has.
	leaving os.Signal
}

// errHurry is returned where a second signal says not to wait any longer.
var errHurry = errors.New("asked twice to end")

func runElected(g *connect.Flags, o runOptions, name, path string, argv []string, stderr io.Writer) error {
	// New finds out what is wrong with the arguments only when used, and makes up
	// the id.
	o.id = elect.New(nil, name, &elect.Options{ID: o.id}).ID()
	r := &runner{o: o, url: g.URL, bound: g.WithTimeout, name: name, path: path, argv: argv, signals: make(chan os.Signal, 16)}
	ui.Notify(r.signals, forwarded...)
	defer signal.Stop(r.signals)
	// A write to a standard error that nobody reads is then an error, not the end.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	r.report = newReporter(stderr, o.log, name, o.id)
	defer r.report.close()

	r.report.info("coordinator", fmt.Sprintf("this is %q%s", name, g.Coordinator()), slog.String("url", g.Shown()))
	var err error
	if argv != nil {
		err = child.CanRun() // said now, and not only when this process leads
	}
	if err == nil {
		err = r.serve()
	}
	if err == nil {
		err = r.run()
	}
	if r.server != nil {
		r.server.close()
	}
	err = o.codes.or(err)
	if e := (*ui.ExitError)(nil); errors.As(err, &e) && e.Err == nil {
		return err
	}
	if err != nil {
		code := ui.ExitCode(err, io.Discard)
		r.report.say(message{slog.LevelError, "failed", err.Error(), []slog.Attr{cause(err)}, nil})
		return &ui.ExitError{Code: code}
	}
	return nil
}

// run opens the coordinator and leads, again and again with --restart. Its result
// is the exit code, as a [*ui.ExitError]; nil is 0.
func (r *runner) run() error {
	r.since = time.Now()
	opened, err := r.connect()
	if err != nil {
		return r.left(err)
	}
	if _, several := opened.(*spread.Backend); several && !r.o.right.spreads {
		opened.Close()
		return connect.ErrSeveral
	}
	if r.server != nil {
		r.server.follow(opened)
	}
	b := backend.For(opened, r.name)
	starts := backoff.Backoff{Min: 2 * time.Second, Max: time.Minute} // of which a pause takes half at least
	for {
		h, err := r.campaign(b)
		if err != nil {
			if errors.Is(err, errHurry) {
				return r.left(err) // the coordinator ends what was joined
			}
			opened.Close()
			return r.left(err)
		}
		r.led = true
		began := time.Now()
		lost, err := r.lead(h)
		if lost && r.o.restart && r.leaving == nil {
			err = r.pause(&starts, h.Check(), time.Since(began))
			if err == nil {
				r.since = time.Now()
				continue
			}
		}
		if cerr := opened.Close(); cerr != nil {
			r.report.warn("closing", "the session could not be ended: "+cerr.Error(), cause(cerr))
		}
		return err
	}
}

// pause waits before this process stands in line again, if it was not ready for its term: those behind it are to have time to lead, and
// processes that cannot work must not take turns without end. See [elect.Election.Run]. A signal that asks this process to end ends the pause.
func (r *runner) pause(starts *backoff.Backoff, why error, led time.Duration) error {
	if led >= max(r.ttl, time.Second) {
		starts.Reset()
	}
	if !errors.Is(why, elect.ErrNotReady) {
		return nil
	}
	err := r.attend(context.Background(), func(ctx context.Context) error { return starts.After(ctx, why) })
	if err != nil {
		return r.left(err)
	}
	return nil
}

// connect opens the coordinator. While it cannot be reached, connect tries again, for as long as this process would wait
// for its turn, and says so once a minute.
func (r *runner) connect() (b backend.Backend, err error) {
	said, bound := time.Time{}, r.o.connect
	if r.o.try {
		bound = 0
	} else if r.o.wait > 0 && (bound < 0 || r.o.wait < bound) {
		bound = r.o.wait
	}
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if bound > 0 {
		ctx, cancel = context.WithDeadlineCause(ctx, r.since.Add(bound), fmt.Errorf("%w: no answer within %v", backend.ErrUnavailable, bound))
	}
	defer cancel()
	err = r.attend(ctx, func(ctx context.Context) (err error) {
		for wait := backoff.New(ctx); ; {
			b, err = connect.Open(ctx, r.url)
			pause := wait.Next()
			if !errors.Is(err, backend.ErrUnavailable) || bound >= 0 && time.Since(r.since)+pause > bound {
				return err
			}
			if time.Since(said) > time.Minute {
				said = time.Now()
				r.report.warn("connecting", "waiting for the coordinator: "+err.Error(), cause(err))
			}
			if err := backoff.Sleep(ctx, pause); err != nil {
				return err
			}
		}
	})
	return b, err
}

// left is the result of a process that has left the line, or never stood in it, because
// of err.
func (r *runner) left(err error) error {
	if r.leaving != nil {
		return &ui.ExitError{Code: ui.SignalExit(r.leaving)}
	}
	return err
}

// attend calls f, which blocks, and cancels its context when a signal asks this
// process to end. After a second such signal it waits for f no longer.
func (r *runner) attend(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case sig := <-r.signals:
			if !endsWaiting(sig) {
				continue
			}
			if r.leaving != nil {
				return errHurry
			}
			r.leaving = sig
			r.report.tell("STOPPING=1")
			r.report.info("interrupted", "leaving the line: "+ui.SignalName(sig), slog.String("signal", ui.SignalName(sig)))
			cancel(ui.Interrupted{Signal: sig})
		}
	}
}

// campaign waits until this process leads. When a signal has asked it to end it
// returns an error, even if it was elected at the same moment.
func (r *runner) campaign(b backend.Backend) (held, error) {
	if r.leaving != nil {
		return held{}, ui.Interrupted{Signal: r.leaving}
	}
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if r.o.try { // it waits for nobody but the coordinator
		ctx, cancel = r.bound(ctx)
	} else if r.o.wait > 0 {
		ctx, cancel = context.WithDeadlineCause(ctx, r.since.Add(r.o.wait), r.o.missed(r.name, r.o.wait))
	}
	defer cancel()
	var h held
	err := r.attend(ctx, func(ctx context.Context) (err error) {
		for {
			h, err = r.stand(ctx, b)
			if r.o.grace != 0 || !errors.Is(err, backend.ErrInvalid) {
				return err
			}
			// The default grace time may be too long for a session that came later, and has a shorter time.
			if s, gone := r.session(ctx, b); gone != nil || s.TTL() == r.ttl {
				return err
			}
		}
	})
	if err != nil {
		return held{}, err
	}
	select {
	case sig := <-r.signals:
		if endsWaiting(sig) {
			r.leaving = sig
		}
	default:
	}
	if r.leaving != nil {
		r.resign(h)
		return held{}, ui.Interrupted{Signal: r.leaving}
	}
	return h, nil
}

// stand stands in line, with a grace time for the session that there is.
func (r *runner) stand(ctx context.Context, b backend.Backend) (h held, err error) {
	s, err := r.session(ctx, b)
	if err != nil {
		return h, err
	}
	r.ttl = s.TTL()
	if r.grace, err = graceFor(r.o.grace, s.TTL(), s.MaxMargin()); err != nil {
		return h, err
	}
	o := &elect.Options{ID: r.o.id, Value: r.o.value, Trace: func(ev trace.Event) { r.trace(b, ev) }}
	r.o.choice.options(o)
	if r.server != nil {
		o.Trace = trace.Tee(o.Trace, r.server.trace())
	}
	if s.TTL() > 0 {
		o.Margin = r.grace
	}
	if naming.OfElection(r.name, naming.History) != "" {
		o.History = r.o.history
	}
	if h, err = r.o.take(ctx, b, r.name, o); err == nil {
		if r.server != nil {
			r.server.term.Store(h.Term)
		}
		r.report.info("elected", fmt.Sprintf("%s %q, token %d", r.o.right.won, r.name, h.Token()), token(h.Term))
	}
	return h, err
}

// session returns the session. A runner that has led before waits for a coordinator that
// it cannot reach, as candidates in line do: the outage may be why leadership was lost.
func (r *runner) session(ctx context.Context, b backend.Backend) (backend.Session, error) {
	waits := func(err error) bool {
		again := r.led && errors.Is(err, backend.ErrUnavailable)
		if again {
			r.retrying(err)
		}
		return again
	}
	return kit.Retry(ctx, backoff.New(ctx), waits, b.Session)
}

func (r *runner) retrying(err error) {
	r.report.warn("retrying", "standing in line again: "+err.Error(), cause(err))
}

// resign leaves the line, and so returns an item that was not confirmed. The command has ended;
// its exit code stays what it is, also when this fails.
func (r *runner) resign(h held) {
	event, text := "resigned", "resigned"
	if h.item != nil {
		event, text = "returned", "returned the item to its place"
	}
	if err := h.Resign(context.Background()); err != nil {
		r.report.warn(event, fmt.Sprintf("not %s: %v", text, err), token(h.Term), cause(err))
		return
	}
	r.report.info(event, fmt.Sprintf("%s, token %d", text, h.Token()), token(h.Term))
}

// trace reports the steps of a campaign on b.
func (r *runner) trace(b backend.Backend, ev trace.Event) {
	switch ev.Kind {
	case trace.Joined:
		r.report.tell("READY=1") // it could take over; as /ready says
	case trace.Waiting:
		if ev.Err != nil { // what stands in front is a gate
			r.report.say(message{slog.LevelInfo, "waiting", fmt.Sprintf("waiting for %q: %v by %%s", r.name, ev.Err), []slog.Attr{cause(ev.Err)},
				func() string { return nameOf(b, ev.Ahead) }})
			return
		}
		r.report.say(message{slog.LevelInfo, "waiting", fmt.Sprintf("waiting for %q behind %%s", r.name), nil,
			func() string { return nameOf(b, ev.Ahead) }})
	case trace.Elected:
		if ev.Member.Line == r.name+naming.Turn { // of a queue
			r.report.info("turn", fmt.Sprintf("the next item of %q is for this process", r.name))
		}
	case trace.Yielded:
		r.report.info("yielded", fmt.Sprintf("first in line for %q, and giving way: %v", r.name, ev.Err), cause(ev.Err))
	case trace.Retrying:
		if errors.Is(ev.Err, elect.ErrNotReady) {
			r.report.warn("not-ready", ev.Err.Error(), cause(ev.Err))
			return
		}
		r.retrying(ev.Err)
	}
}

// nameOf returns the id of m, or its key where that cannot be found out soon.
func nameOf(b backend.Backend, m backend.Member) string {
	if id := value.ID(m.Value); id != "" {
		return id
	}
	const bound = time.Second
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	_, line, err := elect.New(b, m.Line, nil).Line(ctx)
	if err != nil {
		return m.Key
	}
	for _, l := range line {
		if l.Key == m.Key && l.ID != "" {
			return l.ID
		}
	}
	return m.Key
}

func token(t *elect.Term) slog.Attr { return slog.Uint64("token", t.Token()) }

func cause(err error) slog.Attr { return slog.String("cause", ui.OneLine(err.Error())) }

// forwarded are the signals that run passes on to its command.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH,
}

// endsWaiting reports whether sig makes a process leave the line that it stands in.
func endsWaiting(sig os.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}
