//go:build linux

package coordtest

import (
	"context"
	"testing"
	"time"
)

// A PostgreSQL goes through what tests do to it, and leaves nothing.
func TestPostgres(t *testing.T) {
	p := NewPostgres(t, &PostgresOptions{Clock: true})
	s := p.Servers()[0]
	ctx := t.Context()
	serves := func(want bool) {
		t.Helper()
		bound := time.Second
		if want {
			bound = time.Minute
		}
		limit, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		if err := p.serves(limit, s.Addr()); (err == nil) != want {
			t.Fatalf("it serves: %v; want %t", err, want)
		}
	}
	serves(true)
	restore, err := p.Backup(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	serves(false)
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	serves(true)
	for name, f := range map[string]func(context.Context) error{"restart": p.Restart, "restore": restore, "wipe": p.Wipe} {
		if err := f(ctx); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		serves(true)
	}
	p.Kill()
	serves(false)
}

// The standby has what the primary had, and takes its place.
func TestPostgresPair(t *testing.T) {
	for name, o := range map[string]PostgresOptions{"asynchronous": {Standby: true}, "synchronous": {Standby: true, Synchronous: true}} {
		t.Run(name, func(t *testing.T) {
			p := NewPostgres(t, &o)
			if err := p.Lag(); err != nil {
				t.Fatal(err)
			}
			p.Servers()[0].Kill()
			if err := p.Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}
