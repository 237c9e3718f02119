package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/kubernetes"
)

var (
	errNoID   = errors.New("controllerruntime: LeaderElectionID is empty; it names the Lease")
	errOthers = errors.New("controllerruntime: the options bring a lock of their own (LeaderElectionResourceLockInterface); leave it out, or use manager.New")
)

// ErrLost says that a manager has stopped because its process leads no more. The process must end then, as that of any manager.
var ErrLost = errors.New("leader election lost")

// podNamespace is where a pod finds its namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// defaultDuration is what controller-runtime takes for LeaseDuration.
const defaultDuration = 15 * time.Second

// NewManager is [manager.New] for managers that elect their leader by this project, on the Lease that the options name, and beside
// managers that do so by client-go: see the package comment. Without LeaderElection in the options it is manager.New.
//
// eo are options of the election, such as a Trace for metrics and probes; nil means the defaults. Without a Logger it logs to that of the
// manager.
//
// Of the manager's options about leader election it uses LeaderElectionID, LeaderElectionNamespace, LeaderElectionConfig, and LeaseDuration as
// the session time. The leader always gives the lead on when its runnables have ended. Start fails with [ErrLost] when
// this process leads no more.
func NewManager(config *rest.Config, o manager.Options, eo *elect.Options) (manager.Manager, error) {
	if !o.LeaderElection {
		return manager.New(config, o)
	}
	if o.LeaderElectionID == "" {
		return nil, errNoID
	}
	if o.LeaderElectionResourceLockInterface != nil {
		return nil, errOthers
	}
	ko := kubernetes.Options{Namespace: o.LeaderElectionNamespace, As: kubernetes.ClientGo, TTL: sessionTime(o.LeaseDuration)}
	if ko.Namespace == "" {
		name, err := os.ReadFile(podNamespace)
		if err != nil {
			return nil, fmt.Errorf("controllerruntime: this is no pod, so set LeaderElectionNamespace: %w", err)
		}
		ko.Namespace = strings.TrimSpace(string(name))
	}
	elects := o.LeaderElectionConfig
	if elects == nil {
		elects = config
	}
	o.LeaderElection = false
	b, err := kubernetes.New(elects, &ko) // which listens nowhere yet, as a manager does
	if err != nil {
		return nil, err
	}
	m, err := manager.New(config, o)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	var election elect.Options
	if eo != nil {
		election = *eo
	}
	election.Logger = cmp.Or(election.Logger, slog.New(logr.ToSlogHandler(m.GetLogger())))
	return &electing{Manager: m, b: b, e: elect.New(b, o.LeaderElectionID, &election), elected: make(chan struct{})}, nil
}

// sessionTime returns the session time for a LeaseDuration: whole seconds, as client-go's candidates write it into the Lease. Ours
// refuse a Lease that is shorter than their session time.
func sessionTime(lasts *time.Duration) time.Duration {
	switch {
	case lasts == nil:
		return defaultDuration
	case *lasts < time.Second:
		return *lasts
	}
	return lasts.Truncate(time.Second)
}

// An electing is a manager whose runnables that need the lead begin when this process leads.
type electing struct {
	manager.Manager // has no election
	b               *kubernetes.Backend
	e               *elect.Election
	elected         chan struct{}
	term            *elect.Term // set before elected is closed

	leading atomic.Int64 // how many runnables that need the lead are running
}

func (m *electing) Elected() <-chan struct{} { return m.elected }

// Add adds a runnable, as that of the manager does.
func (m *electing) Add(r manager.Runnable) error {
	if !needsLead(r) {
		return m.Manager.Add(r)
	}
	l := leader{r, m}
	if w, ok := r.(warms); ok {
		return m.Manager.Add(warmLeader{l, w})
	}
	return m.Manager.Add(l)
}

// needsLead reports what the manager would find out of a runnable.
func needsLead(r manager.Runnable) bool {
	switch r := r.(type) {
	case webhook.Server, interface{ GetCache() cache.Cache }:
		return false
	case manager.LeaderElectionRunnable:
		return r.NeedLeaderElection()
	}
	return true
}

// A leader is a runnable that waits until this process leads.
type leader struct {
	manager.Runnable
	m *electing
}

func (l leader) Start(ctx context.Context) error {
	select {
	case <-l.m.elected:
	case <-ctx.Done():
		return nil
	}
	l.m.leading.Add(1)
	defer l.m.leading.Add(-1)
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.m.term.Context(), func() { cancel(context.Cause(l.m.term.Context())) })()
	return l.Runnable.Start(within)
}

// warms is what a controller can do before its process leads.
type warms interface{ Warmup(context.Context) error }

type warmLeader struct {
	leader
	warms
}

// Start starts the manager, and campaigns. When ctx ends, and all runnables have returned, the next in line leads. If they do not return in
// GracefulShutdownTimeout, this process keeps the lead until it ends.
func (m *electing) Start(ctx context.Context) error {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Manager.Start(inner) }()
	type outcome struct {
		term *elect.Term
		err  error
	}
	won := make(chan outcome, 1)
	go func() {
		select {
		case <-m.Manager.Elected(): // it has no election: all that needs no lead has begun, and the caches are filled
		case <-inner.Done():
		}
		t, err := m.e.Campaign(inner)
		won <- outcome{t, err}
	}()
	select {
	case err := <-ended: // nothing that needs the lead has begun
		stop()
		if o := <-won; o.err == nil {
			_ = o.term.Resign(context.WithoutCancel(ctx))
		}
		_ = m.b.Close()
		return err
	case o := <-won:
		if o.err != nil {
			stop()
			err := <-ended
			_ = m.b.Close()
			if ctx.Err() != nil { // it has given up because the manager is to stop
				return err
			}
			return errors.Join(o.err, err)
		}
		m.term = o.term
		close(m.elected)
	}
	select {
	case err := <-ended:
		return errors.Join(err, m.giveOn(ctx))
	case <-m.term.Context().Done():
		return m.lost(ended, stop)
	}
}

// giveOn lets the next in line lead, if all runnables have returned.
func (m *electing) giveOn(ctx context.Context) error {
	if m.leading.Load() > 0 {
		return errors.New("controllerruntime: runnables go on, so this process keeps the lead until it ends")
	}
	err := m.term.Resign(context.WithoutCancel(ctx))
	_ = m.b.Close()
	return err
}

// lost stops the manager when the term is over, and returns before another can lead.
func (m *electing) lost(ended <-chan error, stop func()) error {
	cause := context.Cause(m.term.Context())
	why := fmt.Errorf("%w: %w", ErrLost, cause)
	stop()
	ctx, cancel := context.WithCancel(context.Background())
	gone, watches := make(chan struct{}), make(chan struct{})
	defer func() {
		cancel()
		<-watches
	}()
	go func() {
		defer close(watches)
		if m.gone(ctx) == nil {
			close(gone)
		}
	}()
	lasts := m.lasts(cause)
	for left := lasts(); left > 0; left = lasts() {
		select {
		case <-ended:
			return errors.Join(why, m.giveOn(context.Background()))
		case <-gone:
			lasts = func() time.Duration { return 0 }
		case <-time.After(min(left, time.Second)): // the deadline moves ahead with the session's renewals, and passes at once when the session ends
		}
	}
	go func() { // if the process does not end, as it should
		<-ended
		_ = m.giveOn(context.Background())
	}()
	return why
}

// gone returns nil when the member has gone from the line, although its session may live on: the lock of client-go was taken by another
// one, or an operator has removed it.
func (m *electing) gone(ctx context.Context) error {
	s, err := m.b.Session(ctx)
	if err != nil {
		return err
	}
	return s.Gone(ctx, m.term.Member())
}

// lasts returns a func that says for how long nobody else can lead after a term that ended with the cause.
func (m *electing) lasts(cause error) func() time.Duration {
	deadline := m.term.SessionDeadline()
	switch {
	case errors.Is(cause, elect.ErrDeadline): // no request was answered in time; a later answer is not waited for
		return func() time.Duration { return time.Until(deadline) }
	case errors.Is(cause, elect.ErrAsked), errors.Is(cause, elect.ErrNotReady): // this process still stands first
		return func() time.Duration { return time.Until(m.term.SessionDeadline()) }
	}
	return func() time.Duration { return 0 }
}
