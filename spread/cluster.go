package spread

import (
	"context"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/lazy"
)

// A cluster is one coordinator that this process knows.
type cluster struct {
	Cluster
	b *lazy.Backend

	mu       sync.Mutex
	admitted bool            // its stamp was checked
	followed bool            // this process follows its bell
	moving   map[string]Home // what the bell says
	heard    int             // how many times it was heard
	alone    time.Time       // until then, nobody waits for an answer of this founder about a home that is known
}

func (b *Backend) newCluster(c Cluster) *cluster {
	return &cluster{Cluster: c, b: lazy.New(func(context.Context) (backend.Backend, error) { return b.opener(c.URL) })}
}

// use returns the cluster with that name, which has been admitted.
func (b *Backend) use(ctx context.Context, name string) (*cluster, error) {
	c, err := b.named(ctx, name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	admitted := c.admitted
	c.mu.Unlock()
	if admitted {
		return c, nil
	}
	if err := b.admit(ctx, name, c.b); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admitted = true
	return c, nil
}
