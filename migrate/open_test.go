package migrate_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/migrate"
)

func TestOpen(t *testing.T) {
	raw := "migrate:?from=" + url.QueryEscape("memory:open-old?ttl=5s") + "&to=memory:open-new&id=m7&patience=30s"
	b, err := backend.Open(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.(*migrate.Backend).Begin(t.Context(), "reports")
	if err != nil || s.Phase != migrate.Begun || s.ID != "m7" || s.From != "memory:open-old?ttl=5s" {
		t.Fatalf("Begin: %+v, %v", s, err)
	}
	term, err := elect.New(b, "reports", nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A process whose URL has other parameters takes part in the same migration.
	other, err := backend.Open(t.Context(), "migrate:?from=memory:open-old&to=memory:open-new?client=x")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if l, err := elect.New(other, "reports", nil).Leader(t.Context()); err != nil || l.Token != term.Token() {
		t.Errorf("Leader: %+v, %v; want token %d", l, err, term.Token())
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for raw, word := range map[string]string{
		"migrate:":                                                                 "want migrate:",
		"migrate:?from=memory:a":                                                   "want migrate:",
		"migrate:?from=memory:a&to=memory:a":                                       "one coordinator",
		"migrate:?from=memory:a&to=memory:b&ttl=5s":                                "unknown parameter",
		"migrate:?from=memory:a&to=nowhere:b":                                      "unknown scheme",
		"migrate:?from=memory:a&to=migrate:":                                       "not between migrations",
		"migrate:?from=memory:a&to=memory:b&patience=-1s":                          "patience",
		"migrate:?from=" + url.QueryEscape("etcd://me:secret@h/") + "&to=memory:b": "password",
	} {
		b, err := backend.Open(context.Background(), raw)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want ErrInvalid that says %q, and no secret", raw, err, word)
		}
	}
}

func TestNewChecksItsArguments(t *testing.T) {
	b := migrate.New(nil, nil, nil)
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("Session of a backend of nothing: %v", err)
	}
	if _, err := b.Begin(t.Context(), "reports"); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("Begin of a backend of nothing: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
