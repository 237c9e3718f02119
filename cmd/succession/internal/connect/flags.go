package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/local"
	"github.com/succession-dev/succession/spread"
)

// DefaultURL is the coordinator where nobody has named one.
const DefaultURL = "local:"

// Flags are the flags of all subcommands.
type Flags struct {
	URL     string
	Timeout time.Duration
}

// Where ends a message that names an election. Where nobody has named a coordinator, it
// says which one is meant, as perhaps another was; it is "" otherwise.
func (g *Flags) Where() string {
	if g.URL != DefaultURL {
		return ""
	}
	return fmt.Sprintf(" for this user of this machine alone (%s); name another coordinator with --url or $SUCCESSION_URL", g.Shown())
}

// Shown is the coordinator's URL, without secrets, for people and programs. The default is the folder of this user.
func (g *Flags) Shown() string {
	if g.URL == DefaultURL {
		return DefaultURL + local.DefaultDir()
	}
	return coordinator.Redact(g.URL)
}

// Coordinator ends the first message of a command that stands in line: it says where.
func (g *Flags) Coordinator() string {
	if w := g.Where(); w != "" {
		return w
	}
	return " on " + g.Shown()
}

// SayWhere says on standard error what [Flags.Where] returns.
func (g *Flags) SayWhere(cmd *cobra.Command, name string) {
	if w := g.Where(); w != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "succession: %q is meant%s\n", name, w)
	}
}

// ErrTimeout is the cause of a context that --timeout ended.
var ErrTimeout = errors.New("not done within --timeout")

// Look calls f with the election name, for a command that neither stands in line
// nor takes longer than --timeout.
func (g *Flags) Look(name string, f func(context.Context, *elect.Election) error) error {
	return g.With(name, func(_, opening context.Context, e *elect.Election) error { return f(opening, e) })
}

// WithTimeout returns ctx with the bound that --timeout sets.
func (g *Flags) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, g.Timeout, fmt.Errorf("%s: %w of %v", coordinator.Redact(g.URL), ErrTimeout, g.Timeout))
}

// With calls f with the election name; see [Flags.WithBackend].
func (g *Flags) With(name string, f func(ctx, opening context.Context, e *elect.Election) error) error {
	return g.WithElection(name, func(ctx, opening context.Context, b backend.Backend) error {
		return f(ctx, opening, elect.New(b, name, nil))
	})
}

// WithElection is [Flags.WithBackend] for commands that are about an election, which may also live on one of several
// clusters.
func (g *Flags) WithElection(name string, f func(ctx, opening context.Context, b backend.Backend) error) error {
	return g.open(name, f)
}

// WithBackend opens the coordinator, calls f, and closes the coordinator again, unless no
// election or record can have the name. The first context of f ends with a signal, the second
// one also after --timeout.
func (g *Flags) WithBackend(name string, f func(ctx, opening context.Context, b backend.Backend) error) error {
	if err := backend.CheckName(name); err != nil {
		return err
	}
	return g.WithAll(f)
}

// WithAll is [Flags.WithBackend] for commands that are about all names.
func (g *Flags) WithAll(f func(ctx, opening context.Context, b backend.Backend) error) error {
	return g.reach(func(ctx, opening context.Context, b backend.Backend) error {
		if _, several := b.(*spread.Backend); several {
			return ErrSeveral
		}
		return f(ctx, opening, b)
	})
}

// ErrSeveral is why a command that is not about one election needs one coordinator.
var ErrSeveral = fmt.Errorf("%w URL: several clusters have elections alone; name the one with --url that has this (of an election \"succession spread where\" says which)", backend.ErrInvalid)

// WithClusters is [Flags.WithBackend] for commands that are about several clusters.
func (g *Flags) WithClusters(name string, f func(ctx, opening context.Context, b *spread.Backend) error) error {
	return g.open(name, func(ctx, opening context.Context, b backend.Backend) error {
		several, ok := b.(*spread.Backend)
		if !ok {
			return fmt.Errorf("%w URL: name several clusters, as in: --url spread:/etc/app/clusters.json", backend.ErrInvalid)
		}
		return f(ctx, opening, several)
	})
}

func (g *Flags) open(name string, f func(ctx, opening context.Context, b backend.Backend) error) error {
	if err := backend.CheckName(name); err != nil {
		return err
	}
	return g.reach(f)
}

func (g *Flags) reach(f func(ctx, opening context.Context, b backend.Backend) error) error {
	return ui.UntilSignal(func(ctx context.Context) error {
		opening, cancel := g.WithTimeout(ctx)
		defer cancel()
		b, err := Open(opening, g.URL)
		if err != nil {
			return guess(err)
		}
		err = guess(f(ctx, opening, b))
		// What f found out counts; a session that cannot be closed has joined nothing.
		b.Close()
		return err
	})
}

// guess adds to the error of a call that took too long what may be the reason, unless something is known of that,
// such as a disk that is full.
func guess(err error) error {
	if errors.Is(err, ErrTimeout) && !errors.Is(err, backend.ErrUnavailable) {
		return fmt.Errorf("%w; is the coordinator up, and --url right?", err)
	}
	return err
}
