package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/memory"
)

func TestOpen(t *testing.T) {
	ctx := t.Context()
	c, err := memory.Named("open-test", &memory.Options{TTL: 3 * time.Second})
	ok(t, "Named", err)
	before := c.Requests() // of an earlier run in this process
	a, err := succession.Connect(ctx, "memory:open-test?ttl=3s&client=web-1")
	ok(t, "Open", err)
	defer a.Close()
	b, err := succession.Connect(ctx, "memory:open-test")
	ok(t, "Open", err)
	defer b.Close()
	other, err := succession.Connect(ctx, "memory:open-test-2")
	ok(t, "Open", err)
	defer other.Close()

	s := session(t, b)
	if s.TTL() != 3*time.Second || session(t, other).TTL() != memory.DefaultTTL {
		t.Fatalf("TTL is %v, of the other %v", s.TTL(), session(t, other).TTL())
	}
	ma := join(t, session(t, a), "a")
	mb := join(t, s, "b")
	mo := join(t, session(t, other), "other")
	if p := ahead(t, s, mb); p.Ahead != ma {
		t.Fatalf("b is at %+v, want behind a", p)
	}
	if p := ahead(t, session(t, other), mo); !p.First {
		t.Fatalf("alone on another coordinator: %+v", p)
	}
	if r := c.Requests().Since(before); len(c.Members(election)) != 2 || r.Of("web-1", memory.OpJoin) != 1 {
		t.Fatalf("the named coordinator has %v, %v", c.Members(election), r)
	}
	a.(*memory.Backend).Expire()
	if len(c.Members(election)) != 1 {
		t.Fatal("Expire of a client opened by URL has no effect")
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := memory.Named("refuse-test", &memory.Options{TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"memory:",
		"memory://host/name",
		"memory:/path",
		"memory:a b",
		"memory:refuse-test?ttl=2s",
		"memory:refuse-test?ttl=never",
		"memory:refuse-test?session=1s",
	} {
		b, err := succession.Connect(t.Context(), url)
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("Open(%q) = %v, %v; want ErrInvalid", url, b, err)
		}
	}
}
