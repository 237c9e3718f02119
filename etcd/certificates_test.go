package etcd_test

import (
	"testing"

	"github.com/succession-dev/succession/internal/rig/certs"
)

// issue makes a certificate for servers on the loopback address, also by the name
// etcd.example, and for clients. etcd takes its common name for a user.
func issue(t *testing.T, by *certs.Certificate, name string) (cert, key string) {
	t.Helper()
	c := by.Sign(t, name, "127.0.0.1", "etcd.example")
	return c.File, c.KeyFile
}

// certificates returns the files of an authority and of one certificate by it.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	authority := certs.New(t, "authority")
	cert, key = issue(t, authority, "node")
	return authority.File, cert, key
}
