package consul

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// unroutable is the address of the catalog node, which is no machine. It is from a block
// that is reserved for documentation (RFC 5737).
const unroutable = "192.0.2.1"

// create creates a session of Consul and returns its id. The types of the api package cannot
// express a lock-delay of zero, with which the end of a session leaves nothing behind on the
// servers.
func (c *client) create(ctx context.Context) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	body := map[string]any{
		"Name":       fmt.Sprintf("succession %s %d", host, os.Getpid()),
		"TTL":        c.o.TTL.String(),
		"Behavior":   api.SessionBehaviorDelete,
		"LockDelay":  "0s",
		"NodeChecks": []string{},
	}
	if !c.o.AgentNode {
		body["Node"] = c.o.Node
	}
	var out struct{ ID string }
	_, err = c.urgent.Raw().Write("/v1/session/create", body, &out, noWrite.WithContext(ctx))
	var status api.StatusError
	if errors.As(err, &status) && strings.Contains(status.Body, textMissingNode) {
		return "", errNoNode
	}
	switch {
	case err != nil:
		return "", c.explain(err)
	case out.ID == "":
		return "", c.strange("an answer without the session's id")
	}
	return out.ID, nil
}

// errNoNode says that the catalog node of sessions does not exist.
var errNoNode = fmt.Errorf("%w: the catalog node that sessions are bound to does not exist", backend.ErrUnavailable)

// registerNode registers the catalog node of sessions. The node has no health check: a
// node with one is removed when the check's agent has gone.
func (c *client) registerNode(ctx context.Context) error {
	body := map[string]any{"Node": c.o.Node, "Address": unroutable}
	return c.done(ctx, "/v1/catalog/register", body)
}

// done sends a request that Consul answers with true.
func (c *client) done(ctx context.Context, path string, body any) error {
	var yes bool
	_, err := c.urgent.Raw().Write(path, body, &yes, noWrite.WithContext(ctx))
	switch {
	case err != nil:
		return c.explain(err)
	case !yes:
		return c.strange("an answer that is not true")
	}
	return nil
}

// renew asks for more time, and returns what Consul knows of the session, or nil if Consul no
// longer knows it.
func (c *client) renew(ctx context.Context, id string) (*api.SessionEntry, error) {
	var entries []*api.SessionEntry
	_, err := c.renewals.Raw().Write("/v1/session/renew/"+id, nil, &entries, noWrite.WithContext(ctx))
	switch {
	case unknownSession(err):
		return nil, nil
	case err != nil:
		return nil, c.explain(err)
	case len(entries) == 0 || entries[0] == nil:
		return nil, c.strange("an answer without the session")
	}
	return entries[0], nil
}

// knows reports, linearizably, whether the session exists.
func (c *client) knows(ctx context.Context, id string) (bool, error) {
	q := (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx)
	entry, meta, err := c.urgent.Session().Info(id, q)
	if err = c.queried(meta, err); err == nil && entry == nil { // it may have been left out, also without a word: a renewal is refused instead
		entry, err = c.renew(ctx, id)
	}
	return entry != nil, err
}

// destroy ends the session of Consul. Consul answers true also if there is none.
func (c *client) destroy(ctx context.Context, id string) error {
	return c.done(ctx, "/v1/session/destroy/"+id, nil)
}
