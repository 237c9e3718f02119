package candidate

import (
	"context"
	"strings"

	coordinator "github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
	_ "github.com/succession-dev/succession/postgres"
	"github.com/succession-dev/succession/recipes/lock"
	_ "github.com/succession-dev/succession/zookeeper"
)

// URL returns the URL of the coordinator for this project.
func (s Settings) URL() string {
	switch s.Library.Coordinator {
	case Local:
		return Local + ":" + s.Addresses[0]
	case Postgres:
		return "postgres://" + strings.Join(s.Addresses, ",") + "/postgres?user=postgres&sslmode=disable&ttl=" + s.Session.String()
	}
	return s.Library.Coordinator + "://" + strings.Join(s.Addresses, ",") + "?ttl=" + s.Session.String()
}

// succession elects with this project.
func succession(ctx context.Context, s Settings) (func(string) Elector, error) {
	b, err := coordinator.Connect(ctx, s.URL())
	if err != nil {
		return nil, err
	}
	return Succession(b, s), nil
}

// Succession elects with this project, on a backend that is connected.
func Succession(b backend.Backend, s Settings) func(string) Elector {
	return successionTerms(b, s, func(name string, o *elect.Options) func(context.Context) (*elect.Term, error) {
		return elect.New(b, name, o).Campaign
	})
}

// successionMutex holds this project's lock.
func successionMutex(ctx context.Context, s Settings) (func(string) Elector, error) {
	b, err := coordinator.Connect(ctx, s.URL())
	if err != nil {
		return nil, err
	}
	return successionTerms(b, s, func(name string, o *elect.Options) func(context.Context) (*elect.Term, error) {
		m := lock.NewMutex(b, name, o)
		return func(ctx context.Context) (*elect.Term, error) {
			held, err := m.Lock(ctx)
			if err != nil {
				return nil, err
			}
			return held.Term(), nil
		}
	}), nil
}

// successionTerms makes the candidates of a process, which share a session. The documentation says of
// Term.Check: "call it just before work that must not be done twice". All settings but the
// session's time have their defaults.
func successionTerms(
	b backend.Backend, s Settings, stand func(name string, o *elect.Options) func(context.Context) (*elect.Term, error),
) func(string) Elector {
	return func(election string) Elector {
		campaign := stand(election, &elect.Options{ID: s.ID})
		return func(ctx context.Context) (Term, error) {
			t, err := campaign(ctx)
			if err != nil {
				return Term{}, err
			}
			// Where the member cannot be removed it goes with its session.
			return Term{Leads: func() bool { return t.Check() == nil }, Release: func(bool) error { return t.Resign(ctx) }}, nil
		}
	}
}
