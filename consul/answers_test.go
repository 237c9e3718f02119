package consul

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
)

// A server answers each request in the same way.
type server struct {
	status int
	index  uint64
	body   []byte
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	h := http.Header{"X-Consul-Index": {strconv.FormatUint(s.index, 10)}, "X-Consul-Knownleader": {"true"}, "X-Consul-Lastcontact": {"0"}}
	return &http.Response{
		StatusCode: s.status, Status: http.StatusText(s.status), Proto: "HTTP/1.1", Header: h, Request: req,
		Body: io.NopCloser(bytes.NewReader(s.body)), ContentLength: int64(len(s.body)),
	}, nil
}

// What is at the address may answer anything. Then there is an error of the contract, which is short, or an answer that can be
// taken apart; and nothing proves that a session or a key is not there, but Consul's own words.
func FuzzAnswers(f *testing.F) {
	for _, s := range []struct {
		status int
		index  uint64
		body   string
	}{
		{200, 7, `[{"Key":"app/e/01234567-89ab-cdef-0123-456789abcdef","Value":"d2ViLTE=","Session":"x","CreateIndex":7,"ModifyIndex":8}]`},
		{200, 7, `[null]`}, {200, 7, `null`}, {200, 7, `["app/e","app/e/"]`}, {200, 0, `[]`}, {200, 7, `true`}, {200, 7, `{"ID":"x"}`}, {200, 7, `{"ID":""}`},
		{200, 7, `{"Results":[{"KV":{"Key":"app/e","CreateIndex":1}}],"Errors":null}`}, {200, 7, `{"Results":[null,{"KV":null}],"Errors":[null]}`},
		{409, 7, `{"Results":null,"Errors":[{"OpIndex":0,"What":"failed to lock"}]}`}, {409, 7, `{"Results":[],"Errors":[{"OpIndex":-1}]}`},
		{404, 7, ``}, {404, 7, `Session id 'x' not found`}, {403, 7, `Permission denied`}, {429, 0, crowdedBody}, {500, 0, `invalid session`}, {200, 7, `<html>`},
		{413, 0, `Request body(524289 bytes) too large`}, {200, 7, `[{"Key":"app/e","Value":7}]`},
	} {
		f.Add(s.status, s.index, []byte(s.body))
	}
	known := []error{backend.ErrUnavailable, backend.ErrDenied, backend.ErrInvalid, backend.ErrSessionEnded}
	f.Fuzz(func(t *testing.T, status int, index uint64, body []byte) {
		at := &server{status: 200 + ((status-200)%400+400)%400, index: index, body: body}
		cfg := api.DefaultConfig()
		cfg.Address, cfg.HttpClient, cfg.Token, cfg.TokenFile = "127.0.0.1:8500", &http.Client{Transport: at, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, "", ""
		one, err := api.NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		o := &Options{Prefix: "app", Node: "n"}
		c := &client{o: o, renewals: one, urgent: one, calls: one, watches: one, addr: cfg.Address}
		wants := func(call string, err error) {
			t.Helper()
			if err != nil && !errors.Is(err, errNoNode) && !errorIsOneOf(err, known) {
				t.Errorf("%s: %v, which is no error of the contract", call, err)
			}
			if err != nil && len(err.Error()) > 8<<10 {
				t.Errorf("%s: an error of %d bytes", call, len(err.Error()))
			}
		}
		ctx := t.Context()
		p, _, err := c.get(ctx, "app/e")
		if wants("get", err); p == nil && err == nil && at.status != http.StatusNotFound {
			var entries []*api.KVPair // which Consul has read, as it says by the index
			if at.status != http.StatusOK || index == 0 || json.NewDecoder(bytes.NewReader(body)).Decode(&entries) != nil || len(entries) > 0 && entries[0] != nil {
				t.Errorf("get: nothing is there, as %d %q says", at.status, body)
			}
		}
		pairs, _, err := c.list(ctx, "app/e/")
		wants("list", err)
		membersOf("e", o.folder("e"), pairs)
		_, err = c.names(ctx, "app/")
		wants("names", err)
		op := &api.KVTxnOp{Verb: api.KVGetTree, Key: "app/e/"}
		r, err := c.write(ctx, op)
		if wants("write", err); err == nil {
			r.failed(0)
			r.find("app/e")
			membersOf("e", o.folder("e"), r.pairs)
		}
		_, err = c.read(ctx, op)
		wants("read", err)
		entry, err := c.renew(ctx, "x")
		if wants("renew", err); entry == nil && err == nil && !(at.status == http.StatusNotFound && bytes.Contains(body, []byte(textUnknown))) {
			t.Errorf("renew: the session is gone, as %d %q says", at.status, body)
		}
		_, err = c.knows(ctx, "x")
		wants("knows", err)
		id, err := c.create(ctx)
		if wants("create", err); err == nil && id == "" {
			t.Error("create: no id")
		}
		wants("register", c.registerNode(ctx))
	})
}

func errorIsOneOf(err error, all []error) bool {
	for _, e := range all {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

const crowdedBody = "Your IP is issuing too many concurrent connections, please rate limit your calls\n"

// Whichever of the two the client sees first, the refusal or the end of the connection, the error says where the limit is.
func TestRefusedConnectionsSaySo(t *testing.T) {
	c := &client{o: new(Options)}
	for _, err := range []error{
		api.StatusError{Code: http.StatusTooManyRequests, Body: crowdedBody},
		&url.Error{Op: "Get", URL: "http://127.0.0.1:8500/v1/status/leader", Err: errors.New("readLoopPeekFailLocked: %!w(<nil>)")}, // as net/http writes it
	} {
		if err := c.explain(err); !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "http_max_conns_per_client") {
			t.Errorf("%v: it does not say which limit that is", err)
		}
	}
}
