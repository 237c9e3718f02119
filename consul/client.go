package consul

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// A client talks to one agent over three sets of connections. A blocking query that has
// been cancelled goes on at the server until its time is over. Until then it holds one of
// the slots of its connection, or of its address. So renewals, on which the session
// depends, have connections of their own, and so have urgent calls. Queries are rationed;
// see [places].
type client struct {
	o        *Options
	renewals *api.Client
	calls    *api.Client
	watches  *api.Client
	places   places

	addr                 string // for error messages
	namespace, partition string // of transactions, whose operations name them one by one
	https                []*http.Client
}

// newClient makes a client of cfg, which it leaves as it is. Once life has ended and
// close has been called, nothing of the client is left.
func newClient(life context.Context, cfg *api.Config, o *Options) (*client, error) {
	if cfg == nil {
		cfg = api.DefaultConfig()
	}
	c := &client{o: o}
	// This is asked now: cloning a transport gives it a TLSClientConfig, for HTTP/2, and
	// the api package takes that for the caller's.
	ownTLS := cfg.Transport != nil && cfg.Transport.TLSClientConfig != nil
	for _, to := range []**api.Client{&c.renewals, &c.calls, &c.watches} {
		own := ownConfig(cfg, ownTLS)
		made, err := api.NewClient(own)
		if err != nil {
			return nil, driver.Wrap("open", "", fmt.Errorf("%w: %v", backend.ErrInvalid, err))
		}
		// NewClient has put the final transport there. For a unix socket it has made that
		// itself.
		if t, ok := own.HttpClient.Transport.(*http.Transport); ok {
			dialWithin(life, t, o.TTL)
			noticeSilence(t, o.TTL)
			switch to {
			case &c.renewals: // the connection is kept from one to the next
				if t.IdleConnTimeout != 0 {
					t.IdleConnTimeout = max(t.IdleConnTimeout, o.TTL)
				}
			case &c.calls:
				t.MaxConnsPerHost = cmp.Or(t.MaxConnsPerHost, maxCalls)
			case &c.watches: // each query that waits has buffers of its own
				t.ReadBufferSize, t.WriteBufferSize = cmp.Or(t.ReadBufferSize, 1<<10), cmp.Or(t.WriteBufferSize, 1<<10)
			}
		}
		own.HttpClient.Transport = consistently{own.HttpClient.Transport}
		*to = made
		c.https = append(c.https, own.HttpClient)
		c.addr, c.namespace, c.partition = own.Address, own.Namespace, own.Partition
	}
	return c, nil
}

// ownConfig copies cfg, with connections of its own if that is possible. If the caller's
// http.Client has a transport of another kind, that is shared.
func ownConfig(cfg *api.Config, ownTLS bool) *api.Config {
	own := *cfg
	switch {
	case cfg.Transport == nil:
		own.Transport = api.DefaultConfig().Transport
	case ownTLS:
		own.Transport = cfg.Transport.Clone()
	default:
		own.Transport = cfg.Transport.Clone()
		own.Transport.TLSClientConfig = nil
	}
	if cfg.HttpClient != nil {
		h := *cfg.HttpClient
		if t, ok := h.Transport.(*http.Transport); ok {
			h.Transport = t.Clone()
		} else if h.Transport == nil {
			h.Transport = own.Transport
		}
		own.HttpClient = &h
	}
	return &own
}

// dialWithin makes t stop dialing when life ends: otherwise the dial goes on after its
// request was cancelled. It also bounds each dial, which t does not do: it takes from a
// request neither the time limit nor the cancellation. A [net.Dialer] divides the time among
// the addresses of a name, two seconds at least for each. So when the first is silent, the
// next is tried while the session lives.
//
// The kernel asks a peer that is silent for a third of the TTL whether it is there. A
// connection to a machine that has gone breaks, and the blocking query on it fails, before
// the session would end.
func dialWithin(life context.Context, t *http.Transport, ttl time.Duration) {
	dial := t.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, ttl/3)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		conn, err := dial(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			// It is no harm if this kernel cannot do it.
			_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: max(time.Second, ttl/3), Interval: max(time.Second, ttl/12), Count: 3})
		}
		return conn, err
	}
}

// noticeSilence makes t close HTTP/2 connections that have fallen silent, soon enough for
// the session. With HTTP/1, the end of a request closes its connection. With HTTP/2 it
// does not, and the next request would wait on the same connection. If another package
// does HTTP/2 for t, the connections are that package's own, and t knows nothing of them.
func noticeSilence(t *http.Transport, ttl time.Duration) {
	if t.TLSNextProto["h2"] != nil {
		t.TLSNextProto, t.ForceAttemptHTTP2 = nil, true
	}
	var h http.HTTP2Config
	if t.HTTP2 != nil {
		h = *t.HTTP2
	}
	h.SendPingTimeout = cmp.Or(h.SendPingTimeout, ttl/6)
	h.PingTimeout = cmp.Or(h.PingTimeout, ttl/6)
	t.HTTP2 = &h
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
	if req.Context().Value(consistentKey{}) != nil {
		req = req.Clone(req.Context())
		if req.URL.RawQuery != "" {
			req.URL.RawQuery += "&"
		}
		req.URL.RawQuery += "consistent"
	}
	return t.RoundTripper.RoundTrip(req)
}

func (t consistently) CloseIdleConnections() {
	if c, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
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
	return ask(ctx, c, key, c.calls.KV().Get)
}

// list reads all keys with a prefix, linearizably; see get.
func (c *client) list(ctx context.Context, prefix string) (api.KVPairs, uint64, error) {
	return ask(ctx, c, prefix, c.calls.KV().List)
}

// names returns the keys directly under a folder, and the folders there in the form
// "folder/name/".
func (c *client) names(ctx context.Context, folder string) ([]string, error) {
	keys, _, err := ask(ctx, c, folder, func(_ string, q *api.QueryOptions) ([]string, *api.QueryMeta, error) {
		return c.calls.KV().Keys(folder, "/", q)
	})
	return keys, err
}

// below returns all keys that begin with the prefix.
func (c *client) below(ctx context.Context, prefix string) ([]string, error) {
	keys, _, err := ask(ctx, c, prefix, func(_ string, q *api.QueryOptions) ([]string, *api.QueryMeta, error) {
		return c.calls.KV().Keys(prefix, "", q)
	})
	return keys, err
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

// read runs a transaction of reads, linearizably and in one snapshot. Reads state no
// condition, so every refusal is an error: what is missing because of it is not absent.
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
	_, err := c.calls.Raw().Write("/v1/txn", txn, &body, noWrite.WithContext(ctx))
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
	case body.ResultsFilteredByACLs:
		return nil, c.hidden(ops[0].Key)
	}
	for _, e := range body.Errors {
		// A text that explain does not know is that of a condition that did not hold.
		if err := c.explain(api.StatusError{Code: http.StatusConflict, Body: e.What}); !errors.Is(err, backend.ErrUnavailable) {
			return nil, err
		}
	}
	r := &result{errs: body.Errors}
	for _, res := range results {
		if res.KV != nil {
			r.pairs = append(r.pairs, res.KV)
		}
	}
	return r, nil
}
