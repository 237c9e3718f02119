package migrate_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
)

func TestOpen(t *testing.T) {
	raw := "migrate:?from=" + url.QueryEscape("memory:open-old?ttl=5s") + "&to=memory:open-new&id=m7&patience=30s"
	b, err := succession.Connect(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	s, err := b.(*migrate.Backend).Begin(t.Context(), "reports")
	if err != nil || s.Phase != migrate.Begun || !strings.HasPrefix(s.ID, "m7-") || s.From != "memory:open-old?ttl=5s" {
		t.Fatalf("Begin: %+v, %v", s, err)
	}
	term, err := elect.New(b, "reports", nil).Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A process whose URL has other parameters takes part in the same migration.
	other, err := succession.Connect(t.Context(), "migrate:?from=memory:open-old&to=memory:open-new?client=x")
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

// New owns both coordinators also if its options are not possible.
func TestCloseOfWrongOptions(t *testing.T) {
	var closed [2]bool
	of := func(side int) backend.Backend { return closes{memory.New(nil).Client("c"), &closed[side]} }
	b := migrate.New(of(0), of(1), &migrate.Options{From: "memory:a", To: "memory:b", Patience: -1})
	if _, err := b.Session(t.Context()); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("Session: %v, want ErrInvalid", err)
	}
	if err := b.Close(); err != nil || closed != [2]bool{true, true} {
		t.Errorf("Close: %v; closed are %v", err, closed)
	}
}

type closes struct {
	backend.Backend
	closed *bool
}

func (c closes) Close() error {
	*c.closed = true
	return c.Backend.Close()
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
		"migrate:?from=memory:a&to=memory:b&begin=1":                               "neither true nor false",
		"migrate:?from=" + url.QueryEscape("etcd://me:secret@h/") + "&to=memory:b": "password",
	} {
		b, err := succession.Connect(context.Background(), raw)
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

// An election that has moved is led by processes that are started while the old
// coordinator cannot be reached; one that has not moved is not.
func TestOpenWithoutFrom(t *testing.T) {
	const from, to = "zookeeper://127.0.0.1:1/", "memory:open-late"
	b, err := succession.Connect(t.Context(), "migrate:?from="+url.QueryEscape(from+"?connect=200ms")+"&to="+to)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if term, err := elect.New(b, "reports", nil).Campaign(ctx); err == nil {
		t.Fatalf("it leads with token %d, and nothing says that the election has moved", term.Token())
	}
	c, err := memory.Named("open-late", nil)
	if err != nil {
		t.Fatal(err)
	}
	raw := c.Client("raw")
	defer raw.Close()
	s, err := raw.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := header.Header{Migration: header.Migration{ID: "m1", From: from, To: to, Step: "moved"}}
	if _, err := s.Put(t.Context(), "reports", h.Encode(), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	term, err := elect.New(b, "reports", nil).Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	if b, err := succession.Connect(t.Context(), "migrate:?from=memory:x&to="+url.QueryEscape("zookeeper://127.0.0.1:1/?connect=100ms")); err == nil {
		b.Close()
		t.Error("it was opened without the new coordinator")
	}
}
