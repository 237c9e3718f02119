package consul_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// made is an answer of Consul's that a test makes up.
func made(req *http.Request, status int, body string, headers ...string) *http.Response {
	h := http.Header{"X-Consul-Index": {"1"}, "X-Consul-Knownleader": {"true"}, "X-Consul-Lastcontact": {"0"}}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Status: strconv.Itoa(status), Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: req}
}

// A server that has just become the leader denies everything until it has read its log, for which consistent transactions wait.
// That ends nothing, and no call fails.
func TestDeniedForAWhile(t *testing.T) {
	t.Parallel()
	addr := server(t)
	const (
		noToken   = "ACL not found"
		bootstrap = "ACL system must be bootstrapped before making any requests that require authorization: ACL not found"
		noPolicy  = "Permission denied: token with AccessorID 'x' lacks permission 'key:write' on \\\"x\\\""
	)
	withoutPolicy := func(says ...string) func(req *http.Request) *http.Response {
		return func(req *http.Request) *http.Response {
			switch _, lists := req.URL.Query()["keys"]; {
			case req.URL.Path == "/v1/txn":
				return made(req, http.StatusConflict, `{"Results":null,"Errors":[{"OpIndex":0,"What":"`+noPolicy+`"}]}`)
			case lists:
				return made(req, http.StatusNotFound, "", says...)
			}
			return made(req, http.StatusForbidden, noPolicy)
		}
	}
	for name, young := range map[string]func(req *http.Request) *http.Response{
		"no token":  func(req *http.Request) *http.Response { return made(req, http.StatusForbidden, noToken) },
		"no tokens": func(req *http.Request) *http.Response { return made(req, http.StatusForbidden, bootstrap) },
		"no policy": withoutPolicy("X-Consul-Results-Filtered-By-ACLs", "true"),
		// Who has no token is not told that something was left out (agent/consul/rpc.go, maskResultsFilteredByACLs).
		"no policy of the anonymous token": withoutPolicy(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, line := open(t, addr, &consul.Options{TTL: time.Hour}), coordtest.Name(t)
			var unread atomic.Bool
			read := make(chan struct{}, 1)
			var denied, busy atomic.Int64 // how often it has denied something, and how often it gives up to wait for its log
			consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				switch {
				case !unread.Load() || kindOf(req) == "leader":
				case req.URL.Path != "/v1/txn" || !req.URL.Query().Has("consistent"):
					denied.Add(1)
					return young(req), nil
				case busy.Add(-1) >= 0:
					return made(req, http.StatusInternalServerError, "Not ready to serve consistent reads"), nil
				default:
					unread.Store(false)
					kit.Notify(read)
				}
				return next.RoundTrip(req)
			})
			begins := func(what string, call func(ctx context.Context) error) {
				t.Helper()
				select {
				case <-read:
				default:
				}
				denied.Store(0)
				unread.Store(true)
				if err := call(within(t, time.Minute)); err != nil || denied.Load() == 0 {
					t.Errorf("%s: %v, and it was denied %d times", what, err, denied.Load())
				}
			}
			var s backend.Session
			var m backend.Member
			busy.Store(2)
			begins("Session", func(ctx context.Context) (err error) { s, err = b.Session(ctx); return err })
			if s == nil {
				return
			}
			begins("Join", func(ctx context.Context) error {
				j, err := s.Join(ctx, line, "x", "")
				m = j.Member
				return err
			})
			begins("Renew", func(context.Context) error { return consul.Renew(s) })
			begins("Put", func(ctx context.Context) error {
				_, err := s.Put(ctx, line+".data/x", []byte("x"), &backend.If{Member: m})
				return err
			})
			begins("Get", func(ctx context.Context) error {
				r, err := s.Get(ctx, line+".data/x")
				if err == nil && string(r.Value) != "x" {
					err = errors.New("it is " + string(r.Value))
				}
				return err
			})
			begins("List", func(ctx context.Context) error {
				names, err := s.List(ctx, line+".data")
				if err == nil && len(names) != 1 {
					err = errors.New("it is incomplete")
				}
				return err
			})
			left := make(chan error, 1)
			begins("Gone", func(ctx context.Context) error {
				go func() { left <- s.Gone(t.Context(), m) }()
				select {
				case <-read:
				case <-ctx.Done():
				}
				return context.Cause(ctx)
			})
			begins("Leave", func(ctx context.Context) error { return s.Leave(ctx, m) })
			if err := <-left; err != nil {
				t.Errorf("Gone: %v", err)
			}
			if err := s.Err(); err != nil {
				t.Errorf("the session has ended: %v", err)
			}
		})
	}
}

// In another datacenter than the primary one, a server that has not seen the token yet cannot look it up while the primary one is away. It
// denies all writes and reads of one key, and of all other reads it leaves out everything, without saying so. That ends nothing, and calls wait
// for it. A request without a token has that of the agent (acl.tokens.default) or the anonymous one, which are looked up in the same way.
func TestPrimaryDatacenterIsAway(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, token string
		says        []string // headers of lists
	}{
		{"token", "one that the server cannot look up", nil},
		{"no token", "", nil},
		// It has the token, but not its policies, and says that it has left something out.
		{"policies", "one that the server knows", []string{"X-Consul-Results-Filtered-By-ACLs", "true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			primaryIsAway(t, c.token, c.says...)
		})
	}
}

func primaryIsAway(t *testing.T, token string, says ...string) {
	const denied = "Permission denied: token with AccessorID 'primary-dc-down' lacks permission 'key:write' on \\\"x\\\""
	addr, line := server(t), coordtest.Name(t)
	other, err := open(t, addr, nil).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Put(t.Context(), line+".data/x", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	b := openWith(t, &api.Config{Address: addr, Token: token}, &consul.Options{TTL: time.Hour})
	var away atomic.Int64 // how many more requests are denied
	consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		switch {
		case kindOf(req) == "leader" || away.Add(-1) < 0:
			return next.RoundTrip(req)
		case req.URL.Path == "/v1/txn" && req.URL.Query().Has("consistent"):
			return made(req, http.StatusOK, `{"Results":[],"Errors":null}`), nil
		case req.URL.Path == "/v1/txn":
			return made(req, http.StatusConflict, `{"Results":null,"Errors":[{"OpIndex":0,"What":"`+denied+`"}]}`), nil
		case req.URL.Query().Has("keys"), req.URL.Query().Has("recurse"): // the index is that of what it leaves out
			resp, err := next.RoundTrip(req)
			if err != nil {
				return nil, err
			}
			resp.Body.Close()
			return made(req, http.StatusNotFound, "", append(says, "X-Consul-Index", resp.Header.Get("X-Consul-Index"))...), nil
		case strings.HasPrefix(req.URL.Path, "/v1/session/info/"):
			return made(req, http.StatusOK, "[]"), nil
		}
		return made(req, http.StatusForbidden, denied), nil
	})
	var s backend.Session
	var m backend.Member
	for _, call := range []struct {
		name string
		call func(ctx context.Context) error
	}{
		{"Session", func(ctx context.Context) (err error) { s, err = b.Session(ctx); return err }},
		{"Join", func(ctx context.Context) error {
			j, err := s.Join(ctx, line, "x", "")
			m = j.Member
			return err
		}},
		{"Ahead", func(ctx context.Context) error {
			if p, err := s.Ahead(ctx, m); err != nil || !p.First {
				return fmt.Errorf("it stands at %+v (error: %v)", p, err)
			}
			return nil
		}},
		{"Line", func(ctx context.Context) error {
			if l, err := s.Line(ctx, line); err != nil || len(l.Members) != 1 {
				return fmt.Errorf("%+v (error: %v)", l, err)
			}
			return nil
		}},
		{"WatchLine", func(ctx context.Context) error {
			if l, err := s.WatchLine(ctx, line, backend.Line{}); err != nil || len(l.Members) != 1 {
				return fmt.Errorf("%+v (error: %v)", l, err)
			}
			return nil
		}},
		{"Lines", func(ctx context.Context) error {
			if all, err := s.Lines(ctx); err != nil || all[line] != 1 {
				return fmt.Errorf("%d stand in the line (error: %v)", all[line], err)
			}
			return nil
		}},
		{"Survey", func(ctx context.Context) error {
			if all, err := s.Survey(ctx); err != nil || all[line].First != m {
				return fmt.Errorf("%+v (error: %v)", all[line], err)
			}
			return nil
		}},
		{"Get", func(ctx context.Context) error { _, err := s.Get(ctx, line); return err }},
		{"List", func(ctx context.Context) error {
			if names, err := s.List(ctx, line+".data"); err != nil || len(names) != 1 {
				return fmt.Errorf("%v (error: %v)", names, err)
			}
			return nil
		}},
		{"ReadAll", func(ctx context.Context) error {
			if all, err := s.ReadAll(ctx, line+".data"); err != nil || len(all) != 1 {
				return fmt.Errorf("%v (error: %v)", all, err)
			}
			return nil
		}},
		{"Leave", func(ctx context.Context) error { return s.Leave(ctx, m) }},
	} {
		away.Store(10)
		if err := call.call(within(t, time.Minute)); err != nil || away.Load() > 0 {
			t.Fatalf("%s: %v, and %d more requests were to be denied", call.name, err, away.Load())
		}
	}
	away.Store(10)
	if err := consul.Renew(s); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("a renewal returned %v, want ErrUnavailable", err)
	}
	if err := s.Err(); err != nil {
		t.Errorf("the session has ended: %v", err)
	}
}
