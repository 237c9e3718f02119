package memory

import (
	"context"
	"fmt"
	"sync"

	"github.com/succession-dev/succession/backend"
)

// scheme is that of the URLs, and the Backend of a [backend.Error].
const scheme = "memory"

func init() { backend.Register(scheme, open) }

// named are the coordinators that URLs name. They live as long as the process, as
// a server outlives its clients.
var named struct {
	sync.Mutex
	coordinators map[string]*Coordinator
}

// Named returns the coordinator that the URL memory:name means in this process,
// and makes it with the given options where there is none yet; o is nil for any. It
// fails with [backend.ErrInvalid] where there is one with another TTL.
//
// It is how a test that gives its program URLs reaches the faults behind them; a
// client opened by URL is a [*Backend].
func Named(name string, o *Options) (*Coordinator, error) {
	if err := backend.CheckName(name); err != nil {
		return nil, fmt.Errorf("memory: coordinator: %w", err)
	}
	named.Lock()
	defer named.Unlock()
	c := named.coordinators[name]
	if c == nil {
		c = New(o)
		if named.coordinators == nil {
			named.coordinators = make(map[string]*Coordinator)
		}
		named.coordinators[name] = c
		return c, nil
	}
	if o != nil && o.TTL > 0 && o.TTL != c.ttl {
		return nil, fmt.Errorf("memory: %w: coordinator %s has ttl=%v in this process; leave ttl=%v out, or take another name",
			backend.ErrInvalid, name, c.ttl, o.TTL)
	}
	return c, nil
}

// open opens memory:name?ttl=10s&client=web-1.
func open(_ context.Context, u *backend.URL) (backend.Backend, error) {
	ttl := u.Duration("ttl", 0)
	client := u.Text("client", "")
	if err := u.Err(); err != nil {
		return nil, err
	}
	if len(u.Hosts) > 0 || u.Path == "" || u.Path[0] == '/' {
		return nil, fmt.Errorf("%w URL %s: want memory:NAME, such as memory:test", backend.ErrInvalid, u)
	}
	var o *Options
	if ttl > 0 {
		o = &Options{TTL: ttl}
	}
	c, err := Named(u.Path, o)
	if err != nil {
		return nil, err
	}
	return c.Client(client), nil
}
