package elect

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
)

// Options are the optional settings of an [Election]. Nil and the zero value are
// the defaults.
type Options struct {
	// ID says who this candidate is, for people and observers. It is one line of
	// text. Empty means host name, process id and a random suffix.
	ID string
	// Value is anything more that observers are to know of this candidate, such
	// as its address: text, together with ID at most [backend.MaxValue] bytes. It
	// is fixed from joining until leaving.
	Value string
	// Margin is how long before its deadline a term ends at the latest, so that
	// work can stop before anybody else can begin. Zero means a tenth of the
	// session's time. One that is longer than the backend can keep is refused by
	// Campaign ([backend.Session] MaxMargin); a quarter of the session's time is
	// possible with the defaults of every driver. Who stands first with a deadline that is not
	// further ahead than Margin does not lead, and leaves its place to others after about
	// a session time; that is in the log, and traced.
	Margin time.Duration
	// ResignTimeout bounds how long leaving the line may take once the caller's
	// context has ended. Zero means five seconds.
	ResignTimeout time.Duration
	// Logger gets what a person wants to know: joined, elected, lost, and what is
	// being retried. Nil discards.
	Logger *slog.Logger
	// Trace, if not nil, is called with each step of each campaign, in order; it must
	// not block. Ended comes from a goroutine of its own, while the work of the term may
	// still go on.
	Trace func(Event)
}

// An Election is a candidate's handle on one named line. It is safe for
// concurrent use; each campaign is a member of its own.
type Election struct {
	b    backend.Backend
	name string
	o    Options
	err  error // what is wrong with the arguments; see valid
}

// New returns a handle on the election with the given name on b. It does not
// block and does not talk to the coordinator. A name or an option that is not
// possible is reported by the first call, as [backend.ErrInvalid]. The caller goes on
// owning b.
func New(b backend.Backend, name string, o *Options) *Election {
	e := &Election{b: b, name: name}
	if o != nil {
		e.o = *o
	}
	if e.o.ID == "" {
		e.o.ID = defaultID()
	}
	if e.o.ResignTimeout == 0 {
		e.o.ResignTimeout = 5 * time.Second
	}
	if e.o.Logger == nil {
		e.o.Logger = slog.New(slog.DiscardHandler)
	}
	e.o.Logger = e.o.Logger.With("election", name, "id", e.o.ID)
	e.err = e.check()
	return e
}

func (e *Election) check() error {
	switch {
	case e.o.Margin < 0:
		return fmt.Errorf("elect: %w Margin %v: it is negative", backend.ErrInvalid, e.o.Margin)
	case e.o.ResignTimeout < 0:
		return fmt.Errorf("elect: %w ResignTimeout %v: it is negative", backend.ErrInvalid, e.o.ResignTimeout)
	case strings.ContainsAny(e.o.ID, "\r\n"):
		return fmt.Errorf("elect: %w ID %q: it is more than one line", backend.ErrInvalid, e.o.ID)
	}
	if err := backend.CheckName(e.name); err != nil {
		return fmt.Errorf("elect: %w", err)
	}
	if err := backend.CheckValue(e.value()); err != nil {
		return fmt.Errorf("elect: ID and Value: %w", err)
	}
	return nil
}

// valid returns what is wrong with the arguments of New. Every call begins with it. The
// zero Election, which nobody made with New, has no backend either.
func (e *Election) valid() error {
	if e.b == nil {
		return fmt.Errorf("elect: %w election %q: it has no backend; make it with New", backend.ErrInvalid, e.name)
	}
	return e.err
}

// Name returns the election's name.
func (e *Election) Name() string { return e.name }

// ID returns who this candidate is.
func (e *Election) ID() string { return e.o.ID }

// value is what a member of this election says in the line: the plain ID, which
// foreign participants show as it is, and after a newline the Value, if any.
func (e *Election) value() string {
	if e.o.Value == "" {
		return e.o.ID
	}
	return e.o.ID + "\n" + e.o.Value
}

func splitValue(s string) (id, value string) {
	id, value, _ = strings.Cut(s, "\n")
	return id, value
}

func defaultID() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:4]))
}

func (e *Election) trace(ev Event) {
	if e.o.Trace != nil {
		e.o.Trace(ev)
	}
}

// resignContext is a context for leaving the line: it outlives ctx, whose end may
// be the reason for leaving, by a bounded time.
func (e *Election) resignContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), e.o.ResignTimeout)
}
