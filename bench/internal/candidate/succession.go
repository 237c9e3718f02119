package candidate

import (
	"context"
	"strings"

	"github.com/succession-dev/succession/backend"
	_ "github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/zookeeper"
)

// newSuccession elects with this project, whose documentation says of Term.Check: "call it just
// before work that must not be done twice". All settings but the session's time have their
// defaults.
func newSuccession(ctx context.Context, s Settings) (elector, error) {
	b, err := backend.Open(ctx, s.Coordinator+"://"+strings.Join(s.Addresses, ",")+"?ttl="+s.Session.String())
	if err != nil {
		return nil, err
	}
	e := elect.New(b, s.Election, &elect.Options{ID: s.ID})
	return func(ctx context.Context) (term, error) {
		t, err := e.Campaign(ctx)
		if err != nil {
			return term{}, err
		}
		// Where the member cannot be removed it goes with its session.
		return term{leads: func() bool { return t.Check() == nil }, release: func() { _ = t.Resign(ctx) }}, nil
	}, nil
}
