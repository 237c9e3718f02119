// Package connect is how every subcommand reaches its coordinator: it has the flags that
// name the coordinator and bound the wait for it, and says what is at the address when
// nobody answers as expected (probe).
package connect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// openBound is how long the coordinator has to answer, where the URL does not say. It
// leaves something of five seconds for saying why it did not.
const openBound = 4500 * time.Millisecond

// errNoAnswer is the cause of a context that openBound ended.
var errNoAnswer = errors.New("no answer")

// An unreached is an [backend.ErrUnavailable] that says what is at the address instead.
type unreached string

func (e unreached) Error() string        { return string(e) }
func (e unreached) Is(target error) bool { return target == backend.ErrUnavailable }

// InProcess says that a URL may name a coordinator that nobody outside of this process can see, as those of tests do.
var InProcess bool

// Drivers are those whose coordinators a URL may name, in the order of their schemes.
func Drivers() []coordinator.Driver {
	return slices.DeleteFunc(coordinator.DefaultMux.Drivers(), func(d coordinator.Driver) bool { return d.InProcess && !InProcess })
}

// Open is [succession.Connect] with errors that say what is at the address instead.
func Open(ctx context.Context, url string) (backend.Backend, error) {
	u, err := parse(url)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	opening, cancel := ctx, context.CancelFunc(func() {})
	if u.Text("connect", "") == "" {
		opening, cancel = context.WithTimeoutCause(ctx, openBound, errNoAnswer)
	}
	defer cancel()
	diagnose := diagnosis(ctx, u)
	b, err := succession.Connect(opening, url)
	if !doubtful(err) {
		diagnose(false)
		return b, err
	}
	after := time.Since(begin).Round(100 * time.Millisecond)
	if why := diagnose(true); why != "" {
		within := ""
		if after > 0 {
			within = fmt.Sprintf(" within %v", after)
		}
		return nil, unreached(fmt.Sprintf("%s: not reached%s: %s", u, within, why))
	}
	if errors.Is(err, errNoAnswer) {
		return nil, unreached(fmt.Sprintf("%s: no answer within %v; is the coordinator up, and has it a quorum?", u, after))
	}
	return nil, err
}

// OpenLater is [succession.Open] for a coordinator that need not be there yet.
func OpenLater(url string) (backend.Backend, error) {
	if _, err := parse(url); err != nil {
		return nil, err
	}
	return succession.Open(url)
}

// parse returns a URL that a command may open.
func parse(url string) (*coordinator.URL, error) {
	u, err := coordinator.ParseURL(url)
	if err != nil {
		return nil, err
	}
	d, err := coordinator.DefaultMux.Driver(u)
	if err == nil && d.InProcess && !InProcess {
		err = fmt.Errorf("%w URL: nobody else would see %s:, which is %s, for tests; local: is for all processes of one user of this machine", backend.ErrInvalid, d.Scheme, d.About)
	}
	return u, err
}

// doubtful reports whether err may come from an address that is wrong: nobody has
// answered, or with something that was not understood.
func doubtful(err error) bool {
	if e := (*backend.Error)(nil); errors.As(err, &e) && e.Op == "session" && errors.Is(err, backend.ErrInvalid) {
		return true
	}
	return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, errNoAnswer) || errors.Is(err, ErrTimeout)
}
