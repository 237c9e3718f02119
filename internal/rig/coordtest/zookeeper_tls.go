package coordtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/succession-dev/succession/backend/kit/backoff"
	"github.com/succession-dev/succession/internal/rig/certs"
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

	store, trust string // what the server reads: its certificate with the key, and the authority
}

// NewSecureZooKeeper starts a ZooKeeper with TLS for one test and stops it when the
// test ends. Netty does the TLS; the test fails where it is not installed.
func NewSecureZooKeeper(t testing.TB) *SecureZooKeeper {
	t.Helper()
	dir := t.TempDir()
	z := &SecureZooKeeper{ServerName: secureName, store: filepath.Join(dir, "store.pem"), trust: filepath.Join(dir, "trust.pem")}
	z.issue(t)
	if err := z.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Stop)
	showLogs(t, &z.Cluster)
	return z
}

// secureName is the name in the server's certificate.
const secureName = "zookeeper.test"

// Reissue replaces the authority and all certificates, and starts the server again, with its
// data. CAFile, CertFile and KeyFile are other files then.
func (z *SecureZooKeeper) Reissue(t testing.TB) {
	t.Helper()
	z.issue(t)
	err := z.Restart(t.Context())
	if err == nil {
		err = z.handshake(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// issue makes an authority and the certificates, and the files of the server.
func (z *SecureZooKeeper) issue(t testing.TB) {
	t.Helper()
	authority := certs.New(t, "authority")
	client, server := authority.Sign(t, "client"), authority.Sign(t, "server", secureName)
	z.CAFile, z.CertFile, z.KeyFile = authority.File, client.File, client.KeyFile
	certs.Replace(t, z.trust, authority.File)
	certs.Replace(t, z.store, server.KeyFile, server.File)
}

func (z *SecureZooKeeper) start(ctx context.Context) error {
	jvm, err := nettyArguments()
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	z.SecureAddr = loopback(ports[0])
	z.ZooKeeper, err = StartZooKeeper(ctx, &ZooKeeperOptions{
		JVM: jvm,
		Config: []string{
			"serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
			"secureClientPort=" + strconv.Itoa(ports[0]),
			"secureClientPortAddress=127.0.0.1",
			"ssl.keyStore.location=" + z.store,
			"ssl.trustStore.location=" + z.trust,
		},
	})
	if err != nil {
		return err
	}
	if err := z.handshake(ctx); err != nil {
		z.Stop()
		return err
	}
	return nil
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
	// The other port serves first, and a connection may be closed while this one begins to.
	for (errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, io.EOF)) && backoff.Sleep(ctx, probeInterval) == nil {
		conn, err = dialer.DialContext(ctx, "tcp", z.SecureAddr)
	}
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
