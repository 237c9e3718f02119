package consul

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/security"
)

// A client talks to one agent over four sets of connections. A blocking query that has
// been cancelled goes on at the server until its time is over. Until then it holds one of
// the slots of its connection, or of its address. So renewals, on which the session
// depends, have connections of their own. A call on a silent connection holds it until the call's
// time is over, so [urgent] requests share no connections with other calls. The number of queries
// is limited; see [places].
type client struct {
	o        *Options
	renewals *api.Client
	urgent   *api.Client
	calls    *api.Client
	watches  *api.Client
	places   places

	addr                 string // for error messages
	namespace, partition string // of transactions, whose operations name them one by one
	https                []*http.Client
	anew                 func()           // makes urgent requests dial again
	token                *security.Secret // nil if no file has the token
}

// newClient makes a client of cfg, which it leaves as it is. Once life has ended and close has been
// called, nothing of the client is left. token is the token that the URL names, or nil.
func newClient(life context.Context, cfg *api.Config, o *Options, token *security.Secret) (*client, error) {
	if cfg == nil {
		cfg = api.DefaultConfig()
		cfg.Transport = nil // the client must not use it
	}
	c := &client{o: o}
	if token == nil {
		token = tokenOf(cfg)
	}
	c.token = token
	d := dialerOf(life, cfg, o)
	for _, to := range []**api.Client{&c.renewals, &c.urgent, &c.calls, &c.watches} {
		own := d.config()
		var last *atomic.Bool
		made, err := api.NewClient(own)
		if err != nil {
			return nil, driver.Wrap("open", "", fmt.Errorf("%w: %v", backend.ErrInvalid, err))
		}
		// NewClient has put the final transport there. For a unix socket it has made that
		// itself.
		if t, ok := own.HttpClient.Transport.(*http.Transport); ok {
			d.prepare(t, own, to == &c.renewals, to == &c.watches)
			switch to {
			case &c.renewals: // the connection is kept from one to the next
				if t.IdleConnTimeout != 0 {
					t.IdleConnTimeout = max(t.IdleConnTimeout, o.TTL)
				}
			case &c.urgent:
				t.MaxConnsPerHost = maxUrgent
			case &c.calls:
				t.MaxConnsPerHost = maxCalls
			case &c.watches: // each query that waits has buffers of its own
				last = new(atomic.Bool)
				t.ReadBufferSize, t.WriteBufferSize = cmp.Or(t.ReadBufferSize, 1<<10), cmp.Or(t.WriteBufferSize, 1<<10)
			}
		}
		if to == &c.renewals {
			own.HttpClient.Transport = d.noteAddress(own.HttpClient.Transport)
		}
		if token != nil {
			own.HttpClient.Transport = authorized{own.HttpClient.Transport, token, own.PathPrefix + "/v1/status/"}
		}
		own.HttpClient.Transport = certainly{consistently{bounded{leaving{own.HttpClient.Transport, last}}}, own.PathPrefix + "/v1/txn"}
		*to = made
		if to == &c.urgent {
			c.anew = own.HttpClient.CloseIdleConnections
		}
		c.https = append(c.https, own.HttpClient)
		c.addr, c.namespace, c.partition = own.Address, own.Namespace, own.Partition
	}
	return c, nil
}

// urgent returns a context for requests on which the session or the succession depends: to move members to
// another session of Consul, to learn who stands in front, to leave.
func urgent(ctx context.Context) context.Context {
	return context.WithValue(ctx, urgentKey{}, true)
}

type urgentKey struct{}

func isUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// at returns the connections over which a request with this context goes.
func (c *client) at(ctx context.Context) *api.Client {
	if isUrgent(ctx) {
		return c.urgent
	}
	return c.calls
}

// close closes all connections; requests must have ended.
func (c *client) close() {
	for _, h := range c.https {
		h.CloseIdleConnections()
	}
}

// consistently adds the parameter of a consistent read to requests whose context asks for
// it. The api package can do that only for a GET. The other way to send a transaction,
// Client.Txn, hides the status of errors, and whether results were filtered.
type consistently struct{ http.RoundTripper }

type consistentKey struct{}

func consistent(ctx context.Context) context.Context {
	return context.WithValue(ctx, consistentKey{}, true)
}

func (t consistently) RoundTrip(req *http.Request) (*http.Response, error) {
	if waitsForLog(req.Context()) {
		req = req.Clone(req.Context())
		if req.URL.RawQuery != "" {
			req.URL.RawQuery += "&"
		}
		req.URL.RawQuery += "consistent"
	}
	return t.RoundTripper.RoundTrip(req)
}

func (t consistently) CloseIdleConnections() { closeIdle(t.RoundTripper) }

func closeIdle(t http.RoundTripper) {
	if c, ok := t.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// noWrite is the empty options of a write; each write adds its context.
var noWrite *api.WriteOptions

// queried explains the error of a query. Consul counts its index from 1, so an answer
// without an index is not Consul's: it does not show that anything is absent.
func (c *client) queried(meta *api.QueryMeta, err error) error {
	switch {
	case err != nil:
		return c.explain(err)
	case meta.LastIndex == 0:
		return c.strange("an answer without X-Consul-Index")
	}
	return nil
}

// get reads one key, linearizably; the pair is nil if there is none. A blocking query
// from the index finds every later change.
func (c *client) get(ctx context.Context, key string) (*api.KVPair, uint64, error) {
	return ask(ctx, c, key, c.at(ctx).KV().Get)
}

// list reads all keys with a prefix, linearizably; see get.
func (c *client) list(ctx context.Context, prefix string) (api.KVPairs, uint64, error) {
	pairs, index, err := listing(ctx, c, prefix, c.at(ctx).KV().List)
	if err == nil && slices.Contains(pairs, nil) {
		return nil, 0, c.strange("an answer with an entry that is null")
	}
	return pairs, index, err
}

// names returns the keys directly under a folder, and the folders there in the form
// "folder/name/".
func (c *client) names(ctx context.Context, folder string) ([]string, error) {
	keys, _, err := listing(ctx, c, folder, func(_ string, q *api.QueryOptions) ([]string, *api.QueryMeta, error) {
		return c.at(ctx).KV().Keys(folder, "/", q)
	})
	return keys, err
}

// below returns all keys that begin with the prefix, and the index of their last change; see get.
func (c *client) below(ctx context.Context, prefix string) ([]string, uint64, error) {
	return listing(ctx, c, prefix, func(_ string, q *api.QueryOptions) ([]string, *api.QueryMeta, error) {
		return c.at(ctx).KV().Keys(prefix, "", q)
	})
}

// ask queries what path names, linearizably, and returns the index of the answer.
func ask[T any](ctx context.Context, c *client, path string, query func(string, *api.QueryOptions) (T, *api.QueryMeta, error)) (T, uint64, error) {
	v, meta, err := query(path, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	if err = c.queried(meta, err); err == nil && meta.ResultsFilteredByACLs {
		err = c.hidden(path)
	}
	if err != nil {
		var none T
		return none, 0, err
	}
	return v, meta.LastIndex, nil
}

// listing is ask for what is below a prefix. A server that cannot look up the token, or its policies, leaves out everything, and may not
// say so. That may be the token of the agent, or the anonymous one. So what it does not show is asked for in another way, and then once more.
func listing[S ~[]E, E any](ctx context.Context, c *client, prefix string, query func(string, *api.QueryOptions) (S, *api.QueryMeta, error)) (S, uint64, error) {
	all, index, err := ask(ctx, c, prefix, query)
	if denied := errors.Is(err, backend.ErrDenied); denied || err == nil && len(all) == 0 {
		empty, unknown := c.empty(ctx, prefix)
		switch {
		case unknown != nil:
			return nil, 0, unknown
		case denied || !empty:
			return ask(ctx, c, prefix, query)
		}
	}
	return all, index, err
}

// empty reports whether a transaction shows that no key begins with prefix: its get-or-empty has a result for each key that may be read.
// Nothing is shown to who may not read the key prefix itself, nor of an empty prefix, because Consul refuses an empty key. It fails with
// [backend.ErrUnavailable] if the token or its policies cannot be looked up.
func (c *client) empty(ctx context.Context, prefix string) (bool, error) {
	ops := gets(cmp.Or(prefix, "~")) // no name has a tilde
	if prefix != "" {
		ops = append(ops, &api.KVTxnOp{Verb: api.KVGetTree, Key: prefix})
	}
	r, err := c.read(ctx, ops...)
	if errors.Is(err, backend.ErrUnavailable) {
		return false, err
	}
	return err == nil && prefix != "" && !slices.ContainsFunc(r.pairs, func(p *api.KVPair) bool { return p.CreateIndex != 0 }), nil
}

// A result is the answer to a transaction. If errs is not empty, nothing was done.
type result struct {
	pairs []*api.KVPair
	errs  api.TxnErrors
}

// failed reports whether operation i is among those that were refused.
func (r *result) failed(i int) bool {
	for _, e := range r.errs {
		if e.OpIndex == i {
			return true
		}
	}
	return false
}

// find returns the entry of the key, or nil if there is none.
func (r *result) find(key string) *api.KVPair {
	for _, p := range r.pairs {
		if p.Key == key && p.CreateIndex != 0 { // 0: get-or-empty has found nothing
			return p
		}
	}
	return nil
}

// read runs a transaction of reads, linearizably and in one snapshot. Reads state no condition, so
// every refusal is an error: a key that is missing from a refused answer may exist.
func (c *client) read(ctx context.Context, ops ...*api.KVTxnOp) (*result, error) {
	r, err := c.write(consistent(ctx), ops...)
	if err == nil && len(r.errs) > 0 {
		err = c.explain(api.StatusError{Code: http.StatusConflict, Body: r.errs[0].What})
	}
	return r, err
}

// write runs a transaction. It is not an error if operations were refused because of the
// conditions that they state.
func (c *client) write(ctx context.Context, ops ...*api.KVTxnOp) (*result, error) {
	txn := make(api.TxnOps, len(ops))
	for i, op := range ops {
		op.Namespace, op.Partition = c.namespace, c.partition
		txn[i] = &api.TxnOp{KV: op}
	}
	var body struct {
		Results               json.RawMessage // null where there are none
		Errors                api.TxnErrors
		ResultsFilteredByACLs bool
	}
	var results []struct{ KV *api.KVPair }
	_, err := c.at(ctx).Raw().Write("/v1/txn", txn, &body, noWrite.WithContext(ctx))
	var status api.StatusError
	if errors.As(err, &status) && status.Code == http.StatusConflict {
		err = json.Unmarshal([]byte(status.Body), &body)
	}
	if err == nil && body.Results == nil {
		return nil, c.strange("an answer to a transaction without its results")
	}
	if err == nil {
		err = json.Unmarshal(body.Results, &results)
	}
	switch {
	case err != nil:
		return nil, c.explain(err)
	case slices.Contains(body.Errors, nil):
		return nil, c.strange("an answer with an error that is null")
	}
	for _, e := range body.Errors {
		// If explain does not know the text, a condition did not hold. A denial is none, also one that may pass.
		err := c.explain(api.StatusError{Code: http.StatusConflict, Body: e.What})
		if !errors.Is(err, backend.ErrUnavailable) || strings.Contains(e.What, textDenied) {
			return nil, err
		}
	}
	r := &result{errs: body.Errors}
	for _, res := range results {
		if res.KV != nil {
			r.pairs = append(r.pairs, res.KV)
		}
	}
	// Get-or-empty has a result for each key that may be read. Consul does not say that it has left one out if it cannot look up the token.
	for _, op := range ops {
		if op.Verb == api.KVGetOrEmpty && len(r.errs) == 0 && !slices.ContainsFunc(r.pairs, func(p *api.KVPair) bool { return p.Key == op.Key }) {
			return nil, c.leftOut(ctx, op.Key)
		}
	}
	if body.ResultsFilteredByACLs {
		return nil, c.hidden(ops[0].Key)
	}
	return r, nil
}
