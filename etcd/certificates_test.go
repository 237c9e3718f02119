package etcd_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/certs"
)

// issue makes a certificate for clients, and for servers on the loopback address and
// under the name etcd.example. etcd takes its common name for a user.
func issue(t *testing.T, by *certs.Certificate, name string) (cert, key string) {
	t.Helper()
	c := by.Sign(t, name, "127.0.0.1", "etcd.example")
	return c.File, c.KeyFile
}

// certificates returns the file of an authority, and those of one certificate that it has
// issued.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	authority := certs.New(t, "authority")
	cert, key = issue(t, authority, "node")
	return authority.File, cert, key
}
