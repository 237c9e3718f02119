// Package certs makes the TLS certificates that tests use.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A Certificate is good for a server and for a client, and lasts for a day.
type Certificate struct {
	File, KeyFile string // PEM; the key as PKCS #8, the only form that ZooKeeper reads

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes a certificate that signs itself, and may sign others. Its hosts are names and
// addresses. The files go when the test ends.
func New(t testing.TB, name string, hosts ...string) *Certificate {
	t.Helper()
	return issue(t, nil, name, hosts)
}

// Sign makes a certificate that c signs.
func (c *Certificate) Sign(t testing.TB, name string, hosts ...string) *Certificate {
	t.Helper()
	return issue(t, c, name, hosts)
}

func issue(t testing.TB, by *Certificate, name string, hosts []string) *Certificate {
	t.Helper()
	c, err := Make(t.TempDir(), by, name, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Make makes a certificate that by signs, or that signs itself if by is nil. Its files are in dir.
func Make(dir string, by *Certificate, name string, hosts ...string) (*Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  by == nil,
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	c := &Certificate{File: filepath.Join(dir, name+".pem"), KeyFile: filepath.Join(dir, name+"-key.pem"), cert: cert, key: key}
	return c, errors.Join(
		os.WriteFile(c.File, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(c.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
}

// Replace replaces the file, in one step, by a copy of others, one behind the other. So do
// operators who renew certificates.
func Replace(t testing.TB, file string, by ...string) {
	t.Helper()
	if err := Copy(file, by...); err != nil {
		t.Fatal(err)
	}
}

// Copy is [Replace] where there is no test.
func Copy(file string, by ...string) error {
	var all []byte
	for _, name := range by {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		all = append(all, data...)
	}
	if err := os.WriteFile(file+".new", all, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
