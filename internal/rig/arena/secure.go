//go:build linux

package arena

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"path/filepath"

	"github.com/succession-dev/succession/internal/rig/certs"
)

// A guard is what secures a coordinator: TLS, and a secret that all candidates have. Both can be replaced while
// they run.
type guard struct {
	certificates
	fronts   []*front // one for each server
	file     string   // which contains the secret
	secret   string
	accessor string                            // Consul's name of it
	login    string                            // the parameters of the URL that come before the name of file
	form     func(text string) (secret string) // nil if any text can be a secret
	// change has the coordinator accept next, and not the secret from before. It calls tell when it accepts both, or
	// next at least: from then on the candidates know it.
	change func(ctx context.Context, next string, tell func() error) error
	// refused reports whether the coordinator refuses what is not the present secret.
	refused func(ctx context.Context, secret string) (bool, error)
}

// The user of the candidates, and the operator's password or token.
const (
	user = "app"
	root = "11111111-2222-3333-4444-555555555555"
)

// loginOfUser is how a URL names the user and the file of the password.
const loginOfUser = "user=" + user + "&password-file="

// StartSecured is [Start] for a coordinator whose servers can be reached by TLS alone, with a certificate and a
// secret.
func StartSecured(ctx context.Context, name, dir string, n int) (*Coordinator, error) {
	return start(ctx, name, dir, n, true)
}

// secure is called when the servers serve.
func (c *Coordinator) secure(ctx context.Context, dir string) (err error) {
	g := &guard{certificates: certificates{dir: filepath.Join(dir, "secrets")}}
	c.guard, g.file = g, filepath.Join(g.dir, "secret")
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return err
	}
	err = c.secures(ctx, g)
	if err == nil {
		err = c.RotateSecret(ctx)
	}
	if err == nil {
		err = g.issue()
	}
	if err != nil {
		return err
	}
	for _, s := range c.Servers() {
		f, err := startFront(s.Addr(), g.serve())
		if err != nil {
			return err
		}
		g.fronts = append(g.fronts, f)
	}
	bare := c.URL
	c.URL = func(i int, addrs []string) string {
		return bare(i, addrs) + "&" + g.login + url.QueryEscape(g.file) + "&ca-file=" + url.QueryEscape(g.ca) +
			"&cert-file=" + url.QueryEscape(g.crt) + "&key-file=" + url.QueryEscape(g.key)
	}
	return nil
}

// RotateAuthority replaces the authority and all certificates, and breaks all connections. Those who have the old
// ones alone find no way to the servers from then on.
func (c *Coordinator) RotateAuthority(ctx context.Context) error {
	g := c.guard
	roots, client := g.roots, g.client
	if err := g.issue(); err != nil {
		return err
	}
	for _, f := range g.fronts {
		f.replace(g.serve())
	}
	at := g.fronts[0].addr()
	switch {
	case accepted(at, roots, g.client) == nil:
		return errors.New("a client that knows the old authority alone trusts a server")
	case accepted(at, g.roots, client) == nil:
		return errors.New("a server takes a certificate of the old authority")
	}
	return accepted(at, g.roots, g.client)
}

// RotateSecret replaces the secret. The old one is accepted no more when it returns.
func (c *Coordinator) RotateSecret(ctx context.Context) error {
	g := c.guard
	old, next := g.secret, rand.Text()
	if g.form != nil {
		next = g.form(next)
	}
	err := g.change(ctx, next, func() error {
		if err := os.WriteFile(g.file+".next", []byte(next), 0o600); err != nil {
			return err
		}
		return certs.Copy(g.file, g.file+".next")
	})
	if err != nil {
		return err
	}
	g.secret = next
	if old == "" {
		return nil
	}
	refused, err := g.refused(ctx, old)
	if err == nil && !refused {
		err = errors.New("the old secret is accepted")
	}
	return err
}
