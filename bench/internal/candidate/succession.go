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
	"github.com/succession-dev/succession/recipes/lock"
	_ "github.com/succession-dev/succession/zookeeper"
)

// URL returns the URL of the coordinator for this project.
func (s Settings) URL() string {
	if s.Library.Coordinator == Local {
		return Local + ":" + s.Addresses[0]
	}
	return s.Library.Coordinator + "://" + strings.Join(s.Addresses, ",") + "?ttl=" + s.Session.String()
}

// succession elects with this project.
func succession(ctx context.Context, s Settings) (func(string) Elector, error) {
	return successionTerms(ctx, s, func(b backend.Backend, name string, o *elect.Options) func(context.Context) (*elect.Term, error) {
		return elect.New(b, name, o).Campaign
	})
}

// successionMutex holds this project's lock.
func successionMutex(ctx context.Context, s Settings) (func(string) Elector, error) {
	return successionTerms(ctx, s, func(b backend.Backend, name string, o *elect.Options) func(context.Context) (*elect.Term, error) {
		m := lock.NewMutex(b, name, o)
		return func(ctx context.Context) (*elect.Term, error) {
			held, err := m.Lock(ctx)
			if err != nil {
				return nil, err
			}
			return held.Term(), nil
		}
	})
}

// successionTerms connects a process, whose candidates share a session. The documentation says of
// Term.Check: "call it just before work that must not be done twice". All settings but the
// session's time have their defaults.
func successionTerms(
	ctx context.Context, s Settings, stand func(b backend.Backend, name string, o *elect.Options) func(context.Context) (*elect.Term, error),
) (func(string) Elector, error) {
	b, err := coordinator.Connect(ctx, s.URL())
	if err != nil {
		return nil, err
	}
	return func(election string) Elector {
		campaign := stand(b, election, &elect.Options{ID: s.ID})
		return func(ctx context.Context) (Term, error) {
			t, err := campaign(ctx)
			if err != nil {
				return Term{}, err
			}
			// Where the member cannot be removed it goes with its session.
			return Term{Leads: func() bool { return t.Check() == nil }, Release: func(bool) error { return t.Resign(ctx) }}, nil
		}
	}, nil
}
