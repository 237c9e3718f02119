package consul_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

const rootToken = "11111111-2222-3333-4444-555555555555"

// prompt is how long a refusal may take.
const prompt = 5 * time.Second

// A secured is a Consul that denies what is not allowed.
type secured struct {
	addr string
	root *api.Client
}

func newSecured(t *testing.T) *secured {
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Config: []string{
		`acl{enabled=true default_policy="deny" tokens{initial_management="` + rootToken + `"}}`,
	}})
	addr := c.Addrs()[0]
	root, err := api.NewClient(&api.Config{Address: addr, Token: rootToken, Transport: newTransport(t)})
	if err != nil {
		t.Fatal(err)
	}
	return &secured{addr, root}
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
	b, err := consul.New(&api.Config{Address: c.addr, Token: token}, &consul.Options{TTL: ttl, Prefix: "app"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func (c *secured) sessionAs(t *testing.T, rules ...string) backend.Session {
	t.Helper()
	return sessionOf(t, c.openAs(t, c.token(t, rules...).SecretID))
}

// documented returns the rules of the n-th policy in the documentation, from 0.
func documented(t *testing.T, n int) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/consul.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```hcl\n")
	if len(blocks) < n+2 {
		t.Fatalf("docs/consul.md has %d policies", len(blocks)-1)
	}
	block, _, _ := strings.Cut(blocks[n+1], "\n```")
	return strings.Split(block, "\n")
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
	e := elect.New(b, "jobs", nil)
	term, err := e.Campaign(ctx)
	if err != nil {
		return err
	}
	s, err := b.Session(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(term.Acknowledge(ctx), e.RaiseFence(ctx, 1))
	_, putErr := term.Put(ctx, "position", []byte("7"), 0)
	_, listErr := s.List(ctx, "tasks")
	deleteErr := s.Delete(ctx, "position", &backend.If{Member: term.Member()})
	gate, joinErr := s.Join(ctx, "moved", "")
	pinErr := s.Pin(ctx, gate, backend.Header{Fence: 1}, 0)
	leaveErr := s.Leave(ctx, gate)
	return errors.Join(err, putErr, listErr, deleteErr, joinErr, pinErr, leaveErr, term.Resign(ctx))
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
		func() error { _, err := s.WatchLine(short, "nobody", backend.Line{}); return err },
		func() error { _, err := s.Watch(short, "nothing", backend.Absent); return err },
	} {
		if err := wait(); !errors.Is(err, errEnough) {
			return err
		}
	}
	_, err = s.Get(ctx, "position")
	_, listErr := s.List(ctx, "tasks")
	_, lineErr := e.Line(ctx)
	return errors.Join(err, listErr, lineErr)
}

// The policies of the documentation are enough, and no right in them is too much.
func TestRights(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	candidate, observer := documented(t, 0), documented(t, 1)
	tests := []struct {
		name   string
		rules  []string
		does   func(context.Context, backend.Backend) error
		denied string // the right that an error must name; empty if there is none
	}{
		// This comes first, because a candidate with the right registers the node.
		{"candidate without node", without(t, candidate, "node"), stands, `'node:write' on "succession"`},
		{"candidate", candidate, stands, ""},
		{"candidate without node that is registered", without(t, candidate, "node"), stands, ""},
		{"candidate without session", without(t, candidate, "session"), stands, `'session:write' on "succession"`},
		{"candidate without key_prefix", without(t, candidate, "key_prefix"), stands, `'key:write' on "app/jobs/`},
		{"observer", observer, observes, ""},
		{"observer as candidate", observer, stands, `'key:write' on "app/jobs/`},
		{"observer without session", without(t, observer, "session"), observes, `'session:write' on "succession"`},
		{"observer without key_prefix", without(t, observer, "key_prefix"), observes, `'key:read' on "app/jobs`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := c.openAs(t, c.token(t, tt.rules...).SecretID)
			err := tt.does(within(t, prompt), b)
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

// No call takes keys that its token may not read for absent.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	c := newSecured(t)
	owner := c.sessionAs(t, documented(t, 0)...)
	m := join(t, owner, "e", "")
	if _, err := owner.Put(t.Context(), "dir/r", nil, nil); err != nil {
		t.Fatal(err)
	}
	blind := c.sessionAs(t, `session "succession" { policy = "write" }`)
	ctx := within(t, prompt)
	calls := map[string]func() error{
		"Join":      func() error { _, err := blind.Join(ctx, "e", ""); return err },
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
	for name, call := range calls {
		if err := call(); !errors.Is(err, backend.ErrDenied) {
			t.Errorf("%s returned %v, want ErrDenied", name, err)
		}
	}
}

// The holder of a token that sees only its own member would lead beside everybody else.
func TestFilteredLine(t *testing.T) {
	t.Parallel()
	const keyRules, sessionRules = `key_prefix "app/" { policy = "write" }`, `session "succession" { policy = "write" }`
	c := newSecured(t)
	ctx := t.Context()
	first := c.sessionAs(t, documented(t, 0)...)
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
	c := newSecured(t)
	token := func() *api.ACLToken { return c.token(t, documented(t, 0)...) }
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
	observer := c.sessionAs(t, documented(t, 1)...)
	awaitLine(t, observer, "jobs", 2)

	c.revoke(t, waiting)
	select {
	case err := <-waited:
		if !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), "ACL not found") {
			t.Errorf("Campaign of a waiter whose token was revoked returned %v, want ErrDenied that says so", err)
		}
	case <-within(t, prompt).Done():
		t.Error("a waiter whose token was revoked waits on")
	}
	if err := term.Check(); err != nil {
		t.Errorf("the leader, whose token is another, has lost its term: %v", err)
	}

	c.revoke(t, leading)
	select {
	case <-term.Context().Done():
		if cause := context.Cause(term.Context()); !errors.Is(cause, elect.ErrLost) {
			t.Errorf("the term ended with %v, want ErrLost", cause)
		}
	case <-within(t, prompt).Done():
		t.Error("a leader whose token was revoked leads on")
	}
	if _, err := leader.Campaign(within(t, prompt)); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("the next Campaign returned %v, want ErrDenied", err)
	}
	// Nobody has the right to remove the members now: Consul does it, with the sessions.
	awaitLine(t, observer, "jobs", 0)
}

// awaitLine waits until n members stand in the line.
func awaitLine(t *testing.T, s backend.Session, name string, n int) {
	t.Helper()
	ctx := within(t, 2*prompt)
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

// A token can come from several sources, and one of them counts.
func TestTokenSources(t *testing.T) {
	c := newSecured(t)
	good, bad := c.token(t, documented(t, 0)...).SecretID, rootToken[:35]+"6"
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			t.Setenv("CONSUL_HTTP_ADDR", c.addr)
			b, err := backend.Open(within(t, prompt), "consul:///app?ttl=1s"+tt.query)
			if err == nil {
				err = b.Close()
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
	file := filepath.Join(t.TempDir(), "token")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := c.token(t, documented(t, 0)...)
	write(old.SecretID + "\n")
	open := func() backend.Session {
		t.Helper()
		b, err := backend.Open(t.Context(), "consul://"+c.addr+"/app?ttl=4s&token-file="+file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return sessionOf(t, b)
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
	write(c.token(t, documented(t, 0)...).SecretID)
	works("when the file has a new token")
	c.revoke(t, old)
	works("when the old token is deleted")
	write("")
	works("while the file is written")
	write(rootToken[:35] + "6")
	works("when the file has a token that is unknown")
	if err := a.Leave(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.returns(t, 4*time.Second)
	if w.err != nil || !w.place.First {
		t.Errorf("the next stands at %+v, %v", w.place, w.err)
	}
}
