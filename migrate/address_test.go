package migrate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/migrate"
)

// Two addresses mean one coordinator where everything is the same that says which one it
// is: an agent of Consul also answers for other datacenters, and a namespace and a
// partition have keys of their own. A database of PostgreSQL has schemas, and the context of a
// kubeconfig says which cluster is meant, where both say one: a Pod says none.
func TestAddresses(t *testing.T) {
	const from, to = "consul://h1:8500,h2:8500/app?dc=a", "consul://h1:8500,h2:8500/app?dc=b"
	const schema, usual = "postgres://h/app?schema=a", "postgres://h/app"
	const east, west = "kubernetes://default/app?context=east", "kubernetes://default/app?context=west"
	for _, tt := range []struct {
		from, to string
		same     bool
	}{
		{from, to, true},
		{"consul://h2:8500,h1:8500/app?dc=a&ttl=20s", "consul://h1:8500,h2:8500/app/?connect=1s&dc=b", true},
		{from, "consul://h1:8500,h2:8500/app?dc=c", false},
		{from, "consul://h1:8500,h2:8500/app", false},
		{from, to + "&namespace=n", false},
		{from, to + "&partition=p", false},
		{"consul://h1:8500,h2:8500/app?dc=c", to, false},
		{schema, usual + "?schema=succession", true},
		{schema, usual + "?schema=b", false},
		{usual + "?schema=b", usual, false},
		{east + "&ttl=5s", west, true},
		{east, "kubernetes://default/app?context=other", false},
	} {
		t.Run(tt.from+" "+tt.to, func(t *testing.T) {
			inWorld(t, func(w *world) {
				from, to := from, to
				switch {
				case strings.HasPrefix(tt.from, "postgres"):
					from, to = schema, usual
				case strings.HasPrefix(tt.from, "kubernetes"):
					from, to = east, west
				}
				op := migrate.New(w.c[0].Client("operator"), w.c[1].Client("operator"), &migrate.Options{From: from, To: to})
				defer op.Close()
				w.do(op.Begin, migrate.Begun)
				b := migrate.New(w.c[0].Client("p"), w.c[1].Client("p"), &migrate.Options{From: tt.from, To: tt.to})
				defer b.Close()
				term, err := elect.New(b, election, nil).Campaign(w.ctx)
				if tt.same {
					if err != nil {
						t.Fatal(err)
					}
					if err := term.Resign(w.ctx); err != nil {
						t.Error(err)
					}
				} else if !errors.Is(err, migrate.ErrOther) {
					t.Errorf("a process of another migration: %v; want %v", err, migrate.ErrOther)
				}
			})
		})
	}
}
