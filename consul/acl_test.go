package consul_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
	"github.com/succession-dev/succession/internal/coordtest"
)

const rootToken = "11111111-2222-3333-4444-555555555555"

// newSecured starts a Consul that denies what is not allowed, and returns its address
// and a func that makes a token with the given rules.
func newSecured(t *testing.T) (addr string, token func(rules string) string) {
	c := coordtest.NewConsul(t, &coordtest.ConsulOptions{Config: []string{
		`acl{enabled=true default_policy="deny" tokens{initial_management="` + rootToken + `"}}`,
	}})
	addr = c.Addrs()[0]
	root, err := api.NewClient(&api.Config{Address: addr, Token: rootToken, Transport: newTransport(t)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	return addr, func(rules string) string {
		t.Helper()
		n++
		p, _, err := root.ACL().PolicyCreate(&api.ACLPolicy{Name: fmt.Sprint("policy-", n), Rules: rules}, nil)
		if err != nil {
			t.Fatal(err)
		}
		tok, _, err := root.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: p.ID}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return tok.SecretID
	}
}

// openAs opens a backend with a token, under the prefix "app".
func openAs(t *testing.T, addr, token string) *consul.Backend {
	t.Helper()
	b, err := consul.New(&api.Config{Address: addr, Token: token}, &consul.Options{TTL: ttl, Prefix: "app"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

const (
	documentedRules = `key_prefix "app/" { policy = "write" } session "succession" { policy = "write" } node "succession" { policy = "write" }`
	keyRules        = `key_prefix "app/" { policy = "write" } `
	sessionRules    = `session "succession" { policy = "write" } `
)

func TestRights(t *testing.T) {
	t.Parallel()
	addr, token := newSecured(t)
	ctx := t.Context()

	denied := func(what string, err error, names string) {
		t.Helper()
		if !errors.Is(err, backend.ErrDenied) || !strings.Contains(err.Error(), names) {
			t.Errorf("%s returned %v, want ErrDenied that names %q", what, err, names)
		}
	}
	_, err := openAs(t, addr, rootToken[:35]+"6").Session(ctx)
	denied("Session with an unknown token", err, "ACL not found")
	_, err = openAs(t, addr, token(keyRules)).Session(ctx)
	denied("Session without the right to sessions", err, `session "succession" { policy = "write" }`)
	_, err = openAs(t, addr, token(keyRules+sessionRules)).Session(ctx)
	denied("Session without the right to register its node", err, `node "succession" { policy = "write" }`)

	// The documented rights are enough for everything.
	s := sessionOf(t, openAs(t, addr, token(documentedRules)))
	m := join(t, s, "e", "a")
	if p, err := s.Ahead(ctx, m); err != nil || !p.First {
		t.Fatalf("Ahead returned %+v, %v", p, err)
	}
	if _, err := s.Put(ctx, "r", nil, &backend.If{Member: m}); err != nil {
		t.Error(err)
	}
	if _, err := s.List(ctx, "dir"); err != nil {
		t.Error(err)
	}
	if err := s.Joined(ctx, "e"); err != nil {
		t.Error(err)
	}
	// The node is there now: no right to it is needed any more.
	second := sessionOf(t, openAs(t, addr, token(keyRules+sessionRules)))
	m2 := join(t, second, "e", "b")
	if p, err := second.Ahead(ctx, m2); err != nil || p.Ahead != m {
		t.Errorf("Ahead returned %+v, %v", p, err)
	}
	if err := s.Pin(ctx, m, backend.Header{Fence: 1}, backend.Absent); err != nil {
		t.Error(err)
	}
	if err := s.Leave(ctx, m); err != nil {
		t.Error(err)
	}

	_, err = sessionOf(t, openAs(t, addr, token(sessionRules))).Join(ctx, "e", "")
	denied("Join without the right to keys", err, `key_prefix "app/" { policy = "write" }`)
}

// A token that sees its own member alone would lead beside everybody else.
func TestFilteredLine(t *testing.T) {
	t.Parallel()
	addr, token := newSecured(t)
	ctx := t.Context()
	first := sessionOf(t, openAs(t, addr, token(documentedRules)))
	m := join(t, first, "e", "first")

	blind := sessionOf(t, openAs(t, addr, token(keyRules+sessionRules+`key "app/e/`+m.Key+`" { policy = "deny" }`)))
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
	noFence := sessionOf(t, openAs(t, addr, token(`key_prefix "app/f/" { policy = "write" } key "app/f" { policy = "deny" } `+sessionRules)))
	if _, err := first.Put(ctx, "f", backend.Header{Fence: 7}.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	if p, err := noFence.Ahead(ctx, join(t, noFence, "f", "")); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Ahead of who does not see the fence returned %+v, %v, want ErrDenied", p, err)
	}
}

func TestTokenByURL(t *testing.T) {
	addr, token := newSecured(t)
	secret := token(documentedRules)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_TOKEN", secret)
	for _, query := range []string{"&token-file=" + file, "&token-env=TEST_TOKEN"} {
		b, err := backend.Open(t.Context(), "consul://"+addr+"/app?ttl=1s"+query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := backend.Open(t.Context(), "consul://"+addr+"/app?ttl=1s"); !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Open without a token returned %v, want ErrDenied", err)
	}
	t.Setenv("CONSUL_HTTP_TOKEN", secret)
	t.Setenv("CONSUL_HTTP_ADDR", addr)
	b, err := backend.Open(t.Context(), "consul:///app?ttl=1s")
	if err != nil {
		t.Fatalf("Open by the environment: %v", err)
	}
	b.Close()
}
