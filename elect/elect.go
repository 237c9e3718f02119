package elect

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/internal/logs"
	"github.com/succession-dev/succession/internal/naming"
	"github.com/succession-dev/succession/internal/value"
)

// Options are the optional settings of an [Election]. Nil and the zero value mean the
// defaults.
type Options struct {
	// ID says who this candidate is, to people and observers. It is one line of
	// text. Empty means host name, process id and a random suffix.
	ID string
	// Value says more about this candidate to observers, such as its address. It is
	// text without the character U+001E, and does not change while the candidate stands in line.
	// Value, ID, Priority and Site together have at most [backend.MaxValue] bytes.
	Value string
	// Margin is how long before its deadline a term ends, so that work can stop before
	// another leader begins. Zero means a tenth of the session time. Campaign refuses
	// a Margin that the backend cannot keep ([backend.Session] MaxMargin); a quarter of
	// the session time is possible with the defaults of every driver.
	//
	// A candidate that is first does not lead while its deadline is no further ahead
	// than Margin. After about a session time it leaves the line, and joins again. The
	// log and Trace say so.
	Margin time.Duration
	// ResignTimeout is how long leaving the line may take at most. Zero means five
	// seconds.
	ResignTimeout time.Duration
	// Ready returns nil if this candidate can lead now, and otherwise why it cannot. Nil means that
	// it always can. Ready is asked before the candidate joins, and then about once a second as
	// long as it stands in line or leads, one call at a time. The context of a call lasts at most
	// five seconds. A call must return soon after its context has ended.
	//
	// A candidate that is not ready stands in line, and observers see why ([Candidate] NotReady).
	// When it comes first, it does not lead. If all candidates behind it have said that they are
	// not ready, it waits; otherwise it leaves, and joins again at the end a second later. A leader that becomes
	// unready does the same: it leads on if all behind it are unready, and otherwise its term ends
	// with [ErrNotReady]. A candidate that joins meanwhile has a second to say that it is unready
	// too.
	//
	// Ready, Priority and Site are for elections, and for locks and standbys that have one holder.
	// Members that share something are not compared.
	Ready func(ctx context.Context) error
	// Priority says how much this candidate is preferred: the larger, the more. A candidate that
	// comes first gives way to one behind it that is ready and has a larger priority, and joins
	// again at the end. A leader is not disturbed. Clients of other libraries have priority 0, and
	// never give way.
	Priority int
	// Site says where this candidate is, such as a data center, in one line. Of candidates with the
	// same priority, those in the site of the last leader are preferred.
	Site string
	// History is how many terms the election's history keeps, which package operate reads. A
	// term then writes the history twice, when it has begun and when it has ended, which
	// delays neither. Give all candidates the same number, because each one that writes cuts the
	// history to its own number. Zero means that this candidate writes none. Members that are first
	// together, such as readers of a lock, write none either, nor do those that wait for a turn, as
	// at a semaphore.
	History int
	// Logger is told what a person wants to know: joined, elected, lost, and what is
	// tried again. Nil passes warnings on to [slog.Default], such as that a term was lost or that work goes
	// on after its term, and discards the rest.
	Logger *slog.Logger
	// Trace is called with each step of each campaign, in order, if it is not nil; see
	// [trace.Kind]. It must not block, nor call [Term.Resign]. Ended, Working, SessionLost and
	// Heartbeat may come from other goroutines. A Heartbeat may come at the same time as another
	// event. After Ended the work of the term may still go on. [trace.Tee] makes one func of
	// several.
	Trace func(trace.Event)
}

// An Election is a process's handle on one election. It is safe for concurrent use.
// Each campaign joins the line as another member.
type Election struct {
	b    backend.Backend
	name string
	o    Options
	err  error // what is wrong with the arguments of New

	present atomic.Pointer[Term] // may have ended

	mu        sync.Mutex
	turns     []func()        // what is told to listeners next; see inTurn
	telling   bool            // a goroutine calls turns
	listeners []*listener     // never changed in place
	newest    <-chan struct{} // Done of the session that was used last; for Trace alone
	unready   time.Time       // when a member has left that was not ready
}

// New returns a handle on the election with the given name on b. It does not block and
// does not talk to the coordinator. If the name or an option is not allowed, every call
// on the election fails with [backend.ErrInvalid]. The caller still has to close b.
func New(b backend.Backend, name string, o *Options) *Election {
	e := &Election{b: backend.For(b, name), name: name}
	if o != nil {
		e.o = *o
	}
	e.o.ID = cmp.Or(e.o.ID, defaultID())
	e.o.ResignTimeout = cmp.Or(e.o.ResignTimeout, 5*time.Second)
	e.o.Logger = logs.Or(e.o.Logger).With("election", name, "id", e.o.ID)
	e.err = e.check()
	return e
}

func (e *Election) check() error {
	if err := e.o.Check(); err != nil {
		return err
	}
	if err := naming.CheckElection(e.name, e.o.History > 0); err != nil {
		return fmt.Errorf("elect: %w", err)
	}
	return nil
}

// Check returns what is wrong with the options by themselves, a [backend.ErrInvalid], or nil. New does not return it: each call of
// the election does. Recipes check their options by it, too.
func (o *Options) Check() error {
	switch {
	case o == nil:
		return nil
	case o.Margin < 0:
		return fmt.Errorf("elect: %w Margin %v: it is negative", backend.ErrInvalid, o.Margin)
	case o.ResignTimeout < 0:
		return fmt.Errorf("elect: %w ResignTimeout %v: it is negative", backend.ErrInvalid, o.ResignTimeout)
	case o.History < 0:
		return fmt.Errorf("elect: %w History %d: it is negative; give the number of terms to keep", backend.ErrInvalid, o.History)
	}
	if err := o.value().Check(); err != nil {
		return fmt.Errorf("elect: %w", err)
	}
	return nil
}

func (o *Options) rank() value.Rank { return value.Rank{Priority: o.Priority, Site: o.Site} }

// valid returns what is wrong with the arguments of New, or that New was not called.
// Every call begins with it.
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

// value returns what the members of a candidate with these options say.
func (o *Options) value() value.Of {
	return value.Of{ID: o.ID, Text: o.Value, Rank: o.rank()}
}

func defaultID() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s-%d-%s", cmp.Or(host, "unknown-host"), os.Getpid(), strings.ToLower(rand.Text()[:4]))
}

// trace tells of a step. It is not inlined: its event would lie on the stack of each candidate that waits.
//
//go:noinline
func (e *Election) trace(ev trace.Event) {
	if e.o.Trace != nil {
		ev.Election = e.name
		e.o.Trace(ev)
	}
}

// resignContext returns a context for leaving the line. It lasts ResignTimeout, also if
// ctx has ended: that may be the reason for leaving.
func (e *Election) resignContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), e.o.ResignTimeout)
}
