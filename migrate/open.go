package migrate

import (
	"fmt"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/migrate/internal/composite"
	"github.com/succession-dev/succession/migrate/internal/protocol"
)

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:  composite.Scheme,
		Open:    open,
		Example: "migrate:?from=URL&to=URL",
		About:   "two coordinators, between which an election moves",
	})
}

// open opens migrate:?from=URL&to=URL, optionally with id=ID, patience=30s and begin=true. The
// schemes of both URLs must be registered, as by importing their packages. A URL that is a
// parameter has its own & and ? escaped, as net/url.QueryEscape does.
func open(u *coordinator.URL) (backend.Backend, error) {
	o := &Options{
		From:     u.Text("from", ""),
		To:       u.Text("to", ""),
		ID:       u.Text("id", ""),
		Patience: u.Duration("patience", 0),
		Begin:    u.Bool("begin"),
	}
	if err := u.Err(); err != nil {
		return nil, err
	}
	if len(u.Hosts) > 0 || u.Path != "" || o.From == "" || o.To == "" {
		return nil, fmt.Errorf("%w URL %s: want migrate:?from=URL&to=URL, each URL escaped", backend.ErrInvalid, u)
	}
	for _, raw := range []*string{&o.From, &o.To} {
		part, err := coordinator.ParseURL(*raw)
		if err != nil {
			return nil, err
		}
		if part.Scheme == composite.Scheme {
			return nil, fmt.Errorf("%w URL %s: an election moves between two coordinators, not between migrations", backend.ErrInvalid, u)
		}
	}
	if protocol.SameAddress(o.From, o.To) {
		return nil, fmt.Errorf("%w URL %s: from and to are one coordinator", backend.ErrInvalid, u)
	}
	to, err := coordinator.DefaultMux.Open(o.To)
	if err != nil {
		return nil, err
	}
	from, err := coordinator.DefaultMux.Open(o.From)
	if err != nil {
		to.Close()
		return nil, err
	}
	// Other processes see these addresses, so they must hold no secret.
	o.From, o.To = coordinator.Redact(o.From), coordinator.Redact(o.To)
	return New(from, to, o), nil
}
