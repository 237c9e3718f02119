package fence

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// A Checker protects resources that this process itself writes. It remembers the largest token of
// each resource. The zero value has seen none. A Checker is safe for concurrent use, and must not
// be copied.
//
// It remembers each resource for ever, so the number of their names must not grow with each
// request.
type Checker struct {
	// Keep writes down the largest token of a resource, so that a restart of this process
	// does not forget it: give it back with Restore. Do calls it before the first function
	// with that token runs, and fails if Keep fails. Calls for one resource come one at a
	// time and with growing tokens; they hold up the others of that resource, whose contexts do
	// not end that. ctx is that of the call of Do. Keep must not call the Checker. Nil means
	// that a restart forgets all tokens.
	Keep func(ctx context.Context, resource string, token uint64) error

	mu        sync.Mutex
	resources map[string]*resource
}

// A resource has one largest token. Calls that run at the same time have the same token.
type resource struct {
	mu      sync.Mutex
	largest uint64
	running map[*call]bool
	idle    chan struct{} // closed when the last one of running has returned
}

type call struct {
	token  uint64
	cancel context.CancelCauseFunc
}

// Do runs do. If the resource has seen a larger token, Do fails with a [*StaleError] instead. If
// the token is larger than those before, it first waits until functions with smaller tokens have
// returned: they and do never run at the same time. Functions with the same token may.
//
// The context of do ends with ctx. It also ends, with a [*StaleError] as its cause, when a
// larger token comes; the leader that sent it waits until do has returned, so do should then
// return soon. All that do has begun must be over by then.
//
// Do returns what do returns. If ctx ends while Do waits, it returns the cause of ctx, and do has
// not run; the token counts as seen nevertheless. If do is nil, the token is only shown: when Do
// returns nil, nothing with a smaller token runs, or will run.
func (c *Checker) Do(ctx context.Context, resource string, token uint64, do func(context.Context) error) error {
	if err := checkToken(token); err != nil {
		return err
	}
	doing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, mine := c.resource(resource), &call{token, cancel}
	for {
		idle, err := r.begin(ctx, mine, resource, c.Keep)
		if err != nil {
			return err
		}
		if idle == nil {
			break
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer r.end(mine)
	if do == nil {
		return nil
	}
	return do(doing)
}

// Seen returns the largest token of each resource, to be looked at or saved. It does not stop calls
// of Do: a larger token may be about to be seen.
func (c *Checker) Seen() map[string]uint64 {
	c.mu.Lock()
	resources := maps.Clone(c.resources)
	c.mu.Unlock()
	seen := make(map[string]uint64)
	for name, r := range resources {
		r.mu.Lock() // a call of Keep may hold it for long
		if r.largest > 0 {
			seen[name] = r.largest
		}
		r.mu.Unlock()
	}
	return seen
}

// Restore remembers tokens that were seen earlier, before this process began. It lowers
// none. Call it before the first Do.
func (c *Checker) Restore(seen map[string]uint64) {
	for name, token := range seen {
		r := c.resource(name)
		r.mu.Lock()
		r.largest = max(r.largest, token)
		r.mu.Unlock()
	}
}

func (c *Checker) resource(name string) *resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.resources[name]
	if r == nil {
		r = &resource{running: make(map[*call]bool)}
		if c.resources == nil {
			c.resources = make(map[string]*resource)
		}
		c.resources[name] = r
	}
	return r
}

// begin lets mine run, or returns a channel: the caller waits for it and calls begin again.
func (r *resource) begin(ctx context.Context, mine *call, name string, keep func(context.Context, string, uint64) error) (idle <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mine.token < r.largest {
		return nil, &StaleError{Resource: name, Token: mine.token, Largest: r.largest}
	}
	if mine.token > r.largest {
		if keep != nil {
			if err := keep(ctx, name, mine.token); err != nil {
				return nil, fmt.Errorf("fence: keep token %d of %q: %w", mine.token, name, err)
			}
		}
		// From now on nothing with a smaller token begins. So those that run come to an end.
		r.largest = mine.token
		for c := range r.running {
			c.cancel(&StaleError{Resource: name, Token: c.token, Largest: mine.token})
		}
	}
	for c := range r.running {
		if c.token != mine.token {
			return r.idle, nil
		}
		break // all others have the same token
	}
	if len(r.running) == 0 {
		r.idle = make(chan struct{})
	}
	r.running[mine] = true
	return nil, nil
}

func (r *resource) end(mine *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, mine)
	if len(r.running) == 0 {
		close(r.idle)
	}
}
