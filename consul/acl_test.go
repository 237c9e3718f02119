package consul_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

const rootToken = "11111111-2222-3333-4444-555555555555"

// prompt is how long a refusal may take.
const prompt = 5 * time.Second

// A secured is a Consul that denies what is not allowed.
type secured struct {
	addr string
	root *api.Client
	ttl  time.Duration // of sessions that are opened from now on
}

func newSecured(t *testing.T) *secured { return newSecuredWith(t, new(coordtest.ConsulOptions)) }

func newSecuredWith(t *testing.T, o *coordtest.ConsulOptions) *secured {
	o.Config = []string{`acl{enabled=true default_policy="deny" tokens{initial_management="` + rootToken + `"}}`}
	c := coordtest.NewConsul(t, o)
	addr := c.Addrs()[0]
	root, err := api.NewClient(&api.Config{Address: addr, Token: rootToken, Transport: newTransport(t)})
	if err != nil {
		t.Fatal(err)
	}
	return &secured{addr, root, long}
}

// token makes a token with the given rules.
func (c *secured) token(t *testing.T, rules ...string) *api.ACLToken {
	t.Helper()
	p, _, err := c.root.ACL().PolicyCreate(&api.ACLPolicy{Name: coordtest.Name(t), Rules: strings.Join(rules, "\n")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, _, err := c.root.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: p.ID}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// revoke deletes the token.
func (c *secured) revoke(t *testing.T, tok *api.ACLToken) {
	t.Helper()
	if _, err := c.root.ACL().TokenDelete(tok.AccessorID, nil); err != nil {
		t.Fatal(err)
	}
}

// openAs opens a backend with a token, under the prefix "app".
func (c *secured) openAs(t *testing.T, token string) *consul.Backend {
	t.Helper()
	return c.openOn(t, "", token)
}

// openOn is openAs with sessions on the node.
func (c *secured) openOn(t *testing.T, node, token string) *consul.Backend {
	t.Helper()
	return openWith(t, &api.Config{Address: c.addr, Token: token}, &consul.Options{TTL: c.ttl, Prefix: "app", Node: node})
}

func (c *secured) sessionAs(t *testing.T, rules ...string) backend.Session {
	t.Helper()
	return sessionOf(t, c.openAs(t, c.token(t, rules...).SecretID))
}

// wide are the rules of a token for all elections below the prefix.
var wide = []string{`key_prefix "app/" { policy = "write" }`, `session "succession" { policy = "write" }`, `node "succession" { policy = "write" }`}

// policies returns the rules of a candidate of the election, of who only looks, and of an operator.
func policies(t *testing.T, election string) (candidate, observer, operator []string) {
	t.Helper()
	u, err := coordinator.ParseURL("consul://127.0.0.1/app")
	if err != nil {
		t.Fatal(err)
	}
	text, err := consul.Rights(u, election)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimSpace(text), "\n\n")
	if len(parts) != 3 {
		t.Fatalf("there are %d policies", len(parts))
	}
	lines := func(part string) []string { return strings.Split(part, "\n")[1:] }
	return lines(parts[0]), lines(parts[1]), lines(parts[2])
}

// without returns the rules but for the one that begins with the word.
func without(t *testing.T, rules []string, word string) []string {
	t.Helper()
	left := slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return strings.HasPrefix(r, word) })
	if len(left) != len(rules)-1 {
		t.Fatalf("of the rules %q, %d begin with %q", rules, len(rules)-len(left), word)
	}
	return left
}

// stands does everything that a candidate may do.
func stands(ctx context.Context, b backend.Backend) error {
	e := elect.New(b, "jobs", &elect.Options{Priority: 1, Ready: func(context.Context) error { return nil }})
	term, err := e.Campaign(ctx)
	if err != nil {
		return err
	}
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	err = term.Acknowledge(ctx)
	_, putErr := s.Put(ctx, "jobs.unready/1", nil, &backend.If{Member: term.Member()}) // as who is not ready
	deleteErr := s.Delete(ctx, "jobs.unready/1", nil)
	_, bellErr := s.Put(ctx, "jobs.unready", nil, nil)
	_, historyErr := s.Put(ctx, "jobs.history", nil, &backend.If{Member: term.Member()})
	_, _, lineErr := e.Line(ctx)
	return errors.Join(err, putErr, deleteErr, bellErr, historyErr, lineErr, term.Resign(ctx))
}

// operates does what an operator does.
func operates(ctx context.Context, b backend.Backend) error {
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	l, lineErr := s.Line(ctx, "jobs")
	err = operate.New(b, "jobs", "").RaiseFence(ctx, l.Header.Fence+1)
	gate, joinErr := s.Join(ctx, "jobs", "", "")
	now, nowErr := s.Line(ctx, "jobs")
	pinErr := s.Pin(ctx, gate.Member, now.Header, now.Version)
	return errors.Join(lineErr, err, joinErr, nowErr, pinErr, s.Leave(ctx, gate.Member))
}

// observes does everything that an observer may do.
func observes(ctx context.Context, b backend.Backend) error {
	e := elect.New(b, "jobs", nil)
	for _, err := range e.Observe(ctx) {
		if err != nil {
			return err
		}
		break
	}
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	// Calls that block are refused just like calls that return at once.
	short, cancel := context.WithTimeoutCause(ctx, ttl/4, errEnough)
	defer cancel()
	for _, wait := range []func() error{
		func() error { _, err := s.WatchLine(short, "jobs", backend.Line{}); return err },
		func() error { _, err := s.Watch(short, "jobs.unready", backend.Absent); return err },
	} {
		if err := wait(); !errors.Is(err, errEnough) {
			return err
		}
	}
	_, err = s.Get(ctx, "jobs.history")
	_, listErr := s.List(ctx, "jobs.unready")
	_, _, lineErr := e.Line(ctx)
	return errors.Join(err, listErr, lineErr)
}

// The policies of the documentation are enough, and no right in them is too much.
func TestRights(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	candidate, observer, operator := policies(t, "jobs")
	tests := []struct {
		name, node string
		rules      []string
		does       func(context.Context, backend.Backend) error
		denied     string // the right that an error must name; empty if there is none
	}{
		// This comes first, because who has the right registers the node.
		{"candidate before there is a node", "", candidate, stands, `'node:write' on "succession"`},
		{"operator", "", operator, operates, ""},
		{"operator for those who look", "succession-observers", operator[:len(operator)-2], observes, `'session:write' on "succession-observers"`},
		{"registers that node", "succession-observers", append(slices.Clone(observer), operator[len(operator)-1]), observes, ""},
		{"candidate", "", candidate, stands, ""},
		{"candidate without session", "", without(t, candidate, "session"), stands, `'session:write' on "succession"`},
		{"candidate without members", "", without(t, candidate, `key_prefix "app/jobs/"`), stands, `'key:write' on "app/jobs/`},
		{"candidate without readiness", "", without(t, candidate, `key_prefix "app/jobs.unready/"`), stands, `"app/jobs.unready/`},
		{"candidate as operator", "", candidate, operates, `'key:write' on "app/jobs.fence"`},
		{"observer", "succession-observers", observer, observes, ""},
		{"observer as candidate", "succession-observers", observer, stands, `'key:write' on "app/jobs/`},
		{"observer on the node of candidates", "", observer, observes, `'session:write' on "succession"`},
		{"observer without the header", "succession-observers", without(t, observer, `key "app/jobs" `), observes, `'key:read' on "app/jobs`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := c.openOn(t, tt.node, c.token(t, tt.rules...).SecretID)
			watch, err := calm.Start(t), tt.does(within(t, time.Minute), b)
			watch.Within(prompt, "%s", tt.name)
			switch {
			case tt.denied == "" && err != nil:
				t.Error(err)
			case tt.denied != "" && (!errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), tt.denied)):
				t.Errorf("got error %v, want ErrDenied that names %s", err, tt.denied)
			case tt.denied != "":
				t.Log(err)
			}
		})
	}
}

// What each right gives, as the page says, beside what it is for.
func TestWhatRightsGive(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	as := func(rules ...string) *api.Client {
		cl, err := api.NewClient(&api.Config{Address: c.addr, Token: c.token(t, rules...).SecretID, Transport: newTransport(t)})
		if err != nil {
			t.Fatal(err)
		}
		return cl
	}
	ctx := within(t, time.Minute)
	candidate, _, operator := policies(t, "jobs")
	s := c.sessionAs(t, operator...) // registers the node
	if err := c.openOn(t, "succession-observers", c.token(t, operator...).SecretID).Close(); err != nil {
		t.Fatal(err)
	}

	// One node is one domain of trust, and one line: a candidate removes another, and writes the header.
	first := join(t, s, "jobs", "leader")
	other := c.sessionAs(t, candidate...)
	if _, err := as(candidate...).KV().Delete("app/jobs/"+first.Key, nil); err != nil {
		t.Error("a candidate removes another's member:", err)
	}
	if l, err := other.Line(ctx, "jobs"); err != nil || len(l.Members) != 0 {
		t.Errorf("after that the line is %+v, %v", l, err)
	}
	if _, err := other.Put(ctx, "jobs", backend.Header{Fence: 7}.Encode(), nil); err != nil {
		t.Error("a candidate writes the header:", err)
	}

	// Without the slash it is the beginning of other elections, too.
	kv := as(`key_prefix "app/jobs" { policy = "write" }`).KV()
	for _, key := range []string{"app/jobs2/x", "app/jobs-eu.fence"} {
		if _, err := kv.Put(&api.KVPair{Key: key, Value: []byte("{}")}, nil); err != nil {
			t.Errorf("with the prefix app/jobs %s cannot be written: %v", key, err)
		}
	}

	// A session's id alone gives nothing; the right on the node of those who look gives nothing over candidates.
	id := consul.SessionID(s)
	for what, rules := range map[string]string{
		"without a right on its node": `key_prefix "app/" { policy = "write" }`,
		"with the node of observers":  `session "succession-observers" { policy = "write" }`,
	} {
		if _, err := as(rules).Session().Destroy(id, nil); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s a session was ended: %v", what, err)
		}
		if _, _, err := as(rules).Session().Renew(id, nil); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%s a session was renewed: %v", what, err)
		}
	}

	// Whoever may remove the node ends all sessions on it.
	node := as(`node "succession" { policy = "write" }`)
	if _, err := node.Catalog().Deregister(&api.CatalogDeregistration{Node: "succession"}, nil); err != nil {
		t.Error("the node is not removed:", err)
	}
	select {
	case <-s.Done():
	case <-ctx.Done():
		t.Error("the session outlives its node")
	}
}

// What the policies do not give: a candidate of one election has no power over another, whose name begins
// likewise, and who only looks has none over anybody's session.
func TestRightsEndAtTheElection(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	owner := elect.New(c.openAs(t, c.token(t, wide...).SecretID), "jobs-eu", nil)
	term, err := owner.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	candidate, observer, _ := policies(t, "jobs")
	as := func(rules []string) *api.Client {
		cl, err := api.NewClient(&api.Config{Address: c.addr, Token: c.token(t, rules...).SecretID, Transport: newTransport(t)})
		if err != nil {
			t.Fatal(err)
		}
		return cl
	}
	kv := as(candidate).KV()
	for _, key := range []string{"app/jobs-eu", "app/jobs-eu.fence", "app/jobs-eu/" + term.Member().Key, "app/jobs2/x", "app/jobs.fence"} {
		if _, err := kv.Put(&api.KVPair{Key: key, Value: []byte("{}")}, nil); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("a candidate of jobs wrote %s: %v", key, err)
		}
	}
	pair, _, err := c.root.KV().Get("app/jobs-eu/"+term.Member().Key, nil)
	if err != nil || pair == nil {
		t.Fatal(pair, err)
	}
	if _, err := as(observer).Session().Destroy(pair.Session, nil); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("who only looks ended a leader's session: %v", err)
	}
	// One node is one domain of trust: see docs/consul.md.
	if _, err := as(candidate).Session().Destroy(pair.Session, nil); err != nil {
		t.Errorf("a candidate on the same node: %v", err)
	}
	watch := calm.Start(t)
	select {
	case <-term.Context().Done():
		watch.Within(prompt, "the end of the term")
	case <-within(t, time.Minute).Done():
		t.Error("a leader whose session was ended leads on")
	}
}

// No call takes keys that its token may not read for absent.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	owner := c.sessionAs(t, wide...)
	m := join(t, owner, "e", "")
	if _, err := owner.Put(t.Context(), "dir/r", nil, nil); err != nil {
		t.Fatal(err)
	}
	blind := c.sessionAs(t, `session "succession" { policy = "write" }`)
	ctx := within(t, time.Minute)
	calls := map[string]func() error{
		"Join":      func() error { _, err := blind.Join(ctx, "e", "", ""); return err },
		"Ahead":     func() error { _, err := blind.Ahead(ctx, m); return err },
		"Line":      func() error { _, err := blind.Line(ctx, "e"); return err },
		"Gone":      func() error { return blind.Gone(ctx, m) },
		"WatchLine": func() error { _, err := blind.WatchLine(ctx, "e", backend.Line{}); return err },
		"Append":    func() error { _, err := blind.Append(ctx, "e", ""); return err },
		"Remove":    func() error { return blind.Remove(ctx, m, m) },
		"Leave":     func() error { return blind.Leave(ctx, m) },
		"Pin":       func() error { return blind.Pin(ctx, m, backend.Header{}, 0) },
		"Get":       func() error { _, err := blind.Get(ctx, "dir/r"); return err },
		"Put":       func() error { _, err := blind.Put(ctx, "dir/r", nil, nil); return err },
		"Delete":    func() error { return blind.Delete(ctx, "dir/r", nil) },
		"List":      func() error { _, err := blind.List(ctx, "dir"); return err },
		"Watch":     func() error { _, err := blind.Watch(ctx, "dir/r", backend.Absent); return err },
	}
	watch := calm.Start(t)
	for name, call := range calls {
		if err := call(); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s returned %v, want ErrDenied", name, err)
		}
	}
	watch.Within(prompt, "%d refusals", len(calls))
}

// Who waits is told when its right to read the line is taken away, while its session lives on; and others of the session wait on as before.
func TestRightTakenAway(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl // for a busy machine
	c := newSecured(t)
	c.ttl = ttl
	owner := c.sessionAs(t, wide...)
	tok := c.token(t, wide...)
	s := sessionOf(t, c.openAs(t, tok.SecretID))
	waits := func(line string) (leader backend.Member, told chan error) {
		t.Helper()
		leader = join(t, owner, line, "")
		m := join(t, s, line, "")
		p, err := s.Ahead(t.Context(), m)
		if err != nil || p.First {
			t.Fatal(p, err)
		}
		told = make(chan error, 1)
		go func() {
			var err error
			for err == nil && !p.First {
				err = s.WatchPlace(within(t, time.Minute), m, &p)
			}
			told <- err
		}()
		return leader, told
	}
	_, lost := waits("lost")
	kept, led := waits("kept")
	tok.Policies = c.token(t, `key_prefix "app/kept" { policy = "write" }`, `session "succession" { policy = "write" }`).Policies
	if _, _, err := c.root.ACL().TokenUpdate(tok, nil); err != nil {
		t.Fatal(err)
	}
	watch := calm.Start(t)
	if err := <-lost; !errors.Is(err, backend.ErrDenied) && !watch.NotJudged(ttl/4, "%v", err) {
		t.Errorf("who may not read its line any more is told %v", err)
	}
	watch.Within(3*ttl, "to be told that the line cannot be read any more")
	if err := owner.Leave(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	if err := <-led; err != nil {
		t.Errorf("who waits in another line is told %v", err)
	}
}

// A leader that may not watch its own member any more would not be told if an operator removed it. So its session ends, although it
// could be renewed, and the error says why. The same holds for who watches by Gone, or by other calls than WatchPlace,
// as while the election moves.
func TestRightOfLeaderTakenAway(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.ttl = ttl
	narrowed := func(t *testing.T, run func(b *consul.Backend, s backend.Session, narrow func())) {
		t.Parallel()
		tok := c.token(t, wide...)
		b := c.openAs(t, tok.SecretID)
		s := sessionOf(t, b)
		run(b, s, func() {
			tok.Policies = c.token(t, `session "succession" { policy = "write" }`).Policies
			if _, _, err := c.root.ACL().TokenUpdate(tok, nil); err != nil {
				t.Fatal(err)
			}
		})
		if err := ended(t, s, 4*ttl); !strings.Contains(fmt.Sprint(err), backend.ErrDenied.Error()) {
			t.Errorf("the session has ended because of %v", err)
		}
	}
	t.Run("Campaign", func(t *testing.T) {
		var term *elect.Term
		narrowed(t, func(b *consul.Backend, _ backend.Session, narrow func()) {
			var err error
			if term, err = elect.New(b, "led", nil).Campaign(t.Context()); err != nil {
				t.Fatal(err)
			}
			narrow()
		})
		<-term.Context().Done()
		_ = term.Resign(t.Context()) // its session has ended
	})
	for name, watch := range map[string]func(context.Context, backend.Session, backend.Member) error{
		"Gone": func(ctx context.Context, s backend.Session, m backend.Member) error { return s.Gone(ctx, m) },
		"calls": func(ctx context.Context, s backend.Session, m backend.Member) error {
			return kit.WatchPlace(ctx, s, m, &backend.Place{First: true, Token: m.Position})
		},
	} {
		t.Run(name, func(t *testing.T) {
			narrowed(t, func(_ *consul.Backend, s backend.Session, narrow func()) {
				m := join(t, s, "watched", "")
				narrow()
				go func() {
					for s.Err() == nil && t.Context().Err() == nil {
						_ = watch(t.Context(), s, m)
						select {
						case <-s.Done():
						case <-time.After(ttl / 50): // as who asks again does
						}
					}
				}()
			})
		})
	}
}

// The answer to a join is lost, and the right to write is taken away. What may stand nobody can remove, so the session ends when that has
// lasted for a TTL, and it goes. If the right comes back before, it is removed, and the session lives on.
func TestGhostThatMayNotBeRemoved(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	c.ttl = ttl
	for name, rules := range map[string][]string{"read": {`key_prefix "app/" { policy = "read" }`}, "nothing": nil} {
		for _, back := range []bool{false, true} {
			name := name + map[bool]string{true: "-back"}[back]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tok, narrow := c.token(t, wide...), c.token(t, append(rules, `session "succession" { policy = "write" }`)...)
				full := tok.Policies
				give := func(rights []*api.ACLLink) error {
					tok.Policies = rights
					_, _, err := c.root.ACL().TokenUpdate(tok, nil)
					return err
				}
				b := c.openAs(t, tok.SecretID)
				var sent atomic.Int32
				consul.Tap(b, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
					resp, err := next.RoundTrip(req)
					if err != nil || req.URL.Path != "/v1/txn" {
						return resp, err
					}
					switch n := sent.Add(1); {
					case n == 1:
						resp.Body.Close()
						return nil, errors.Join(give(narrow.Policies), errors.New("the answer is lost"))
					case n == 4 && back: // the join was denied, and then a look for the ghost or its removal
						err = give(full)
					}
					return resp, err
				})
				s := sessionOf(t, b)
				if j, err := s.Join(t.Context(), name, "x", ""); !errors.Is(err, backend.ErrDenied) {
					t.Fatalf("Join returned %+v, %v", j, err)
				}
				watch := calm.Start(t)
				if back {
					var left []string
					for q := new(api.QueryOptions); ; {
						keys, meta, err := c.root.KV().Keys("app/"+name+"/", "", q.WithContext(within(t, time.Minute)))
						if err != nil {
							t.Fatal(err)
						}
						if left, q.WaitIndex = keys, meta.LastIndex; len(left) == 0 {
							break
						}
					}
					if err := s.Err(); err != nil && !watch.NotJudged(ttl/3, "%v", err) {
						t.Errorf("the session has ended because of %v", err)
					}
					return
				}
				begun := time.Now()
				if err := ended(t, s, 2*ttl); !strings.Contains(fmt.Sprint(err), backend.ErrDenied.Error()) && !watch.NotJudged(ttl/3, "%v", err) {
					t.Errorf("the session has ended because of %v", err)
				} else if lived := time.Since(begun); strings.Contains(fmt.Sprint(err), backend.ErrDenied.Error()) && lived < ttl*9/10 {
					t.Errorf("the session has ended after %v", lived)
				}
				if err := b.Close(); err != nil {
					t.Error(err)
				}
				keys, _, err := c.root.KV().Keys("app/"+name+"/", "", nil)
				if err != nil || len(keys) > 0 {
					t.Errorf("%q stand (error: %v)", keys, err)
				}
			})
		}
	}
}

// The holder of a token that sees only its own member would lead beside everybody else.
func TestFilteredLine(t *testing.T) {
	t.Parallel()
	const keyRules, sessionRules = `key_prefix "app/" { policy = "write" }`, `session "succession" { policy = "write" }`
	c := newSecured(t)
	ctx := t.Context()
	first := c.sessionAs(t, wide...)
	m := join(t, first, "e", "first")

	blind := c.sessionAs(t, keyRules, sessionRules, `key "app/e/`+m.Key+`" { policy = "deny" }`)
	own := join(t, blind, "e", "blind")
	if p, err := blind.Ahead(ctx, own); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Ahead of who does not see the first member returned %+v, %v, want ErrDenied", p, err)
	}
	if _, err := blind.Line(ctx, "e"); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Line returned %v, want ErrDenied", err)
	}
	if err := blind.Gone(ctx, m); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Gone of a member that is hidden returned %v, want ErrDenied", err)
	}
	// The fence decides the token.
	noFence := c.sessionAs(t, `key_prefix "app/f/" { policy = "write" }`, `key "app/f" { policy = "deny" }`, sessionRules)
	if _, err := first.Put(ctx, "f", backend.Header{Fence: 7}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	if p, err := noFence.Ahead(ctx, join(t, noFence, "f", "")); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Ahead of who does not see the fence returned %+v, %v, want ErrDenied", p, err)
	}
}

// When a token is revoked, its holder stops, and the error says why.
func TestTokenRevoked(t *testing.T) {
	t.Parallel()
	const ttl = 2 * ttl // for a busy machine
	c := newSecured(t)
	observer := c.sessionAs(t, wide...)
	c.ttl = ttl
	token := func() *api.ACLToken { return c.token(t, wide...) }
	leading, waiting := token(), token()
	ctx := t.Context()

	leader := elect.New(c.openAs(t, leading.SecretID), "jobs", nil)
	term, err := leader.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := elect.New(c.openAs(t, waiting.SecretID), "jobs", nil).Campaign(ctx)
		waited <- err
	}()
	awaitLine(t, observer, "jobs", 2)

	watch := calm.Start(t)
	c.revoke(t, waiting)
	select {
	case err := <-waited:
		if !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "ACL not found") {
			t.Errorf("Campaign of a waiter whose token was revoked returned %v, want ErrDenied that says so", err)
		}
	case <-within(t, time.Minute).Done():
		t.Error("a waiter whose token was revoked waits on")
	}
	if err := term.Check(); err != nil && !watch.NotJudged(ttl/3, "the leader has lost its term: %v", err) {
		t.Errorf("the leader, whose token is another, has lost its term: %v", err)
	}

	watch.Within(5*ttl/2, "the end of the waiter")

	watch = calm.Start(t)
	c.revoke(t, leading)
	select {
	case <-term.Context().Done():
		if cause := context.Cause(term.Context()); !errors.Is(cause, elect.ErrLost) {
			t.Errorf("the term ended with %v, want ErrLost", cause)
		}
		watch.Within(5*ttl/2, "the end of the term")
	case <-within(t, time.Minute).Done():
		t.Error("a leader whose token was revoked leads on")
	}
	if _, err := leader.Campaign(within(t, time.Minute)); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("the next Campaign returned %v, want ErrDenied", err)
	}
	// Nobody has the right to remove the members now: Consul does it, with the sessions.
	awaitLine(t, observer, "jobs", 0)
}

// awaitLine waits until n members stand in the line.
func awaitLine(t *testing.T, s backend.Session, name string, n int) {
	t.Helper()
	ctx := within(t, time.Minute)
	for {
		line, err := s.Line(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case len(line.Members) == n:
			return
		case len(line.Members) > n:
			err = s.Gone(ctx, line.Members[len(line.Members)-1])
		default:
			select {
			case <-time.After(ttl / 50):
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// behindPath returns the address, with a path, of a proxy that stands in front of the agent.
func behindPath(t *testing.T, addr string) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	proxy.Transport = newTransport(t)
	s := httptest.NewServer(http.StripPrefix("/consul", proxy))
	t.Cleanup(s.Close)
	return s.URL + "/consul"
}

// A token can come from several sources, and one of them counts.
func TestTokenSources(t *testing.T) {
	c := newSecured(t)
	good, bad := c.token(t, wide...).SecretID, rootToken[:35]+"6"
	behind := behindPath(t, c.addr)
	file := func(token string) string {
		name := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(name, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	tests := []struct {
		name  string
		query string
		env   map[string]string
		says  string // of ErrDenied; empty where the token is good
	}{
		{"no token", "", nil, "Permission denied"},
		{"token-file", "&token-file=" + file(good), nil, ""},
		{"token-env", "&token-env=TEST_TOKEN", map[string]string{"TEST_TOKEN": good}, ""},
		{"CONSUL_HTTP_TOKEN", "", map[string]string{"CONSUL_HTTP_TOKEN": good}, ""},
		{"CONSUL_HTTP_TOKEN_FILE", "", map[string]string{"CONSUL_HTTP_TOKEN_FILE": file(good)}, ""},
		{"unknown token", "&token-env=TEST_TOKEN", map[string]string{"TEST_TOKEN": bad}, "ACL not found"},
		{"a file before the environment", "", map[string]string{"CONSUL_HTTP_TOKEN": bad, "CONSUL_HTTP_TOKEN_FILE": file(good)}, ""},
		{"the URL before the environment", "&token-env=TEST_TOKEN",
			map[string]string{"TEST_TOKEN": good, "CONSUL_HTTP_TOKEN": bad, "CONSUL_HTTP_TOKEN_FILE": file(bad)}, ""},
		{"a file in the URL before the environment", "&token-file=" + file(good), map[string]string{"CONSUL_HTTP_TOKEN": bad}, ""},
		{"behind a path", "&token-file=" + file(good), map[string]string{"CONSUL_HTTP_ADDR": behind}, ""},
		{"unknown token behind a path", "&token-file=" + file(bad), map[string]string{"CONSUL_HTTP_ADDR": behind}, "ACL not found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("CONSUL_HTTP_ADDR", c.addr)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			b, err := succession.Connect(within(t, time.Minute), "consul:///app?ttl=15s&connect=1m"+tt.query)
			if err == nil {
				err = sessionOf(t, b).Close(t.Context())
				b.Close()
			}
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (!errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("got error %v, want ErrDenied that says %q", err, tt.says)
			case err != nil && (strings.Contains(err.Error(), good) || strings.Contains(err.Error(), bad)):
				t.Errorf("the error shows a token: %v", err)
			}
		})
	}
}

// A token is replaced: there is a new one, then the file has it, and then the old one is deleted. A leader and
// who waits behind it go on.
func TestTokenReplaced(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	t.Run("at the agent", func(t *testing.T) { c.replaceToken(t, c.addr) })
	t.Run("behind a path", func(t *testing.T) { c.replaceToken(t, behindPath(t, c.addr)) })
}

// replaceToken replaces the token of two sessions that talk to the agent at addr.
func (c *secured) replaceToken(t *testing.T, addr string) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := c.token(t, wide...)
	write(old.SecretID + "\n")
	open := func() backend.Session {
		t.Helper()
		return sessionOf(t, openWith(t, &api.Config{Address: addr, TokenFile: file}, &consul.Options{TTL: c.ttl, Prefix: "app"}))
	}
	a, b := open(), open()
	name := coordtest.Name(t)
	m, next := join(t, a, name, ""), join(t, b, name, "")
	w := watchPlace(t, b, next)
	works := func(when string) {
		t.Helper()
		if _, err := a.Put(t.Context(), "record", []byte(when), &backend.If{Member: m}); err != nil {
			t.Errorf("%s: a guarded write: %v", when, err)
		}
		for _, s := range []backend.Session{a, b} {
			if err := consul.Renew(s); err != nil {
				t.Errorf("%s: a renewal: %v", when, err)
			}
		}
	}
	write(c.token(t, wide...).SecretID)
	works("when the file has a new token")
	c.revoke(t, old)
	works("when the old token is deleted")
	write("")
	works("while the file is written")
	write(rootToken[:35] + "6")
	works("when the file has a token that is unknown")
	works("when a renewal has shown the unknown token")
	now, later := c.token(t, wide...), c.token(t, wide...)
	write(now.SecretID)
	works("when the file has another one")
	c.revoke(t, now)
	if _, err := a.Get(within(t, time.Second), "record"); err == nil || errors.Is(err, backend.ErrDenied) {
		t.Errorf("a read before the file has the next one: %v; want one that waits for it", err)
	}
	write(later.SecretID)
	works("when the file has the next one after all")
	if err := a.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.returns(t, 4*time.Second)
	if w.err != nil || !w.place.First {
		t.Errorf("the next stands at %+v, %v", w.place, w.err)
	}
}

// Where sessions belong to agents, the rights that are printed say that they are over the sessions of others.
func TestRightsOnAgents(t *testing.T) {
	u, err := coordinator.ParseURL("consul:///app?agent-node=on")
	if err != nil {
		t.Fatal(err)
	}
	text, err := consul.Rights(u, "jobs")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"every session of the cluster", "who only looks, and can end the sessions of candidates\n"} {
		if !strings.Contains(text, want) || strings.Contains(text, "node=") {
			t.Errorf("they do not say %q, or name a node that is not used:\n%s", want, text)
		}
	}
}
