package coordtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A SecureZooKeeper is a ZooKeeper of one server that also speaks TLS, and takes
// clients there only with a certificate.
type SecureZooKeeper struct {
	*ZooKeeper
	SecureAddr string // secureClientPort

	// PEM files: the authority that has signed all certificates, a certificate for
	// clients, and its key.
	CAFile, CertFile, KeyFile string

	// ServerName is the only name in the server's certificate; it has no address.
	ServerName string
}

// NewSecureZooKeeper starts a ZooKeeper with TLS for one test and stops it when the
// test ends. Netty does the TLS; the test fails where it is not installed.
func NewSecureZooKeeper(t testing.TB) *SecureZooKeeper {
	t.Helper()
	z, err := startSecureZooKeeper(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Stop)
	showLogs(t, &z.Cluster)
	return z
}

func startSecureZooKeeper(ctx context.Context, dir string) (*SecureZooKeeper, error) {
	z := &SecureZooKeeper{
		CAFile:     filepath.Join(dir, "ca.pem"),
		CertFile:   filepath.Join(dir, "client.pem"),
		KeyFile:    filepath.Join(dir, "client-key.pem"),
		ServerName: "zookeeper.test",
	}
	store := filepath.Join(dir, "server.pem")
	if err := z.writeCertificates(store); err != nil {
		return nil, err
	}
	jvm, err := nettyArguments()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	z.SecureAddr = loopback(ports[0])
	z.ZooKeeper, err = StartZooKeeper(ctx, &ZooKeeperOptions{
		NoSync: true,
		JVM:    jvm,
		Config: []string{
			"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
			"secureClientPort=" + strconv.Itoa(ports[0]),
			"secureClientPortAddress=127.0.0.1",
			"ssl.keyStore.location=" + store,
			"ssl.trustStore.location=" + z.CAFile,
		},
	})
	if err != nil {
		return nil, err
	}
	if err := z.handshake(ctx); err != nil {
		z.Stop()
		return nil, err
	}
	return z, nil
}

// handshake waits until the server has answered by TLS. The first time takes it seconds on a
// busy machine, longer than the connect timeout of a test.
func (z *SecureZooKeeper) handshake(ctx context.Context) error {
	pair, err := tls.LoadX509KeyPair(z.CertFile, z.KeyFile)
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(z.CAFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	dialer := tls.Dialer{Config: &tls.Config{ServerName: z.ServerName, RootCAs: roots, Certificates: []tls.Certificate{pair}}}
	ctx, cancel := context.WithTimeout(ctx, zookeeperStart)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", z.SecureAddr)
	if err != nil {
		return fmt.Errorf("the first connection by TLS: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err = io.WriteString(conn, "srvr"); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return err
}

// nettyJars are the parts of Netty that ZooKeeper's TLS needs. The manifest of
// Debian's zookeeper.jar names some of them only.
var nettyJars = []string{"netty-buffer", "netty-codec", "netty-common", "netty-handler", "netty-resolver", "netty-transport"}

// nettyArguments returns what makes Debian's ZooKeeper find Netty. A release of
// Apache has it among its own jars.
func nettyArguments() ([]string, error) {
	if os.Getenv(ZooKeeperJarEnv) != "" {
		return nil, nil
	}
	var jars []string
	for _, name := range nettyJars {
		jar := "/usr/share/java/" + name + ".jar"
		if _, err := os.Stat(jar); err != nil {
			return nil, fmt.Errorf("tests need a ZooKeeper with TLS: %w; run ./test servers, which installs what the tests need "+
				"(on Debian and Ubuntu: apt-get install libnetty-java)", err)
		}
		jars = append(jars, jar)
	}
	// All of them, as classes found in this way see no others.
	return []string{"-Xbootclasspath/a:" + strings.Join(jars, string(os.PathListSeparator))}, nil
}

// writeCertificates makes an authority and what it signs: a certificate of the
// server, with its key in the file store, and one for clients.
func (z *SecureZooKeeper) writeCertificates(store string) error {
	ca, err := newCertificate("authority", nil, nil)
	if err != nil {
		return err
	}
	server, err := newCertificate("server", []string{z.ServerName}, ca)
	if err != nil {
		return err
	}
	client, err := newCertificate("client", nil, ca)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path string
		pem  []byte
	}{
		{z.CAFile, ca.certPEM},
		{store, append(server.keyPEM, server.certPEM...)},
		{z.CertFile, client.certPEM},
		{z.KeyFile, client.keyPEM},
	} {
		if err := os.WriteFile(f.path, f.pem, 0o600); err != nil {
			return err
		}
	}
	return nil
}

type certificate struct {
	cert            *x509.Certificate
	key             *ecdsa.PrivateKey
	certPEM, keyPEM []byte
}

// newCertificate makes a certificate that by signs, or an authority where by is nil.
func newCertificate(name string, hosts []string, by *certificate) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := &certificate{key: key}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		DNSNames:              hosts,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  by == nil,
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	if c.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key) // the only form that ZooKeeper reads
	if err != nil {
		return nil, err
	}
	c.certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	c.keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return c, nil
}
