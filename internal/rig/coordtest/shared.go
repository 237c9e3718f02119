package coordtest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// failureLines is how much of each server's log a failed test shows.
const failureLines = 50

// shared is the ZooKeeper that the tests of one binary share.
var shared struct {
	once sync.Once
	zk   *ZooKeeper
	err  error
	main bool // Main runs, and will stop it
}

// Main runs the tests of a package that calls [SharedZooKeeper], or leaves servers to end, which
// end stops. Then it checks that no goroutine is left. Up to parallel tests run at once, if no
// -parallel flag says otherwise: they wait for sessions and servers, not for the processor.
// Main is for TestMain, and does not return:
//
//	func TestMain(m *testing.M) { coordtest.Main(m, 8) }
func Main(m *testing.M, parallel int, end ...func()) {
	flag.Parse()
	const name = "test.parallel"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if !given {
		if err := flag.Set(name, strconv.Itoa(parallel)); err != nil {
			panic(err)
		}
	}
	shared.main = true
	code := m.Run()
	if shared.zk != nil {
		shared.zk.Stop()
	}
	for _, end := range end {
		end()
	}
	if code == 0 {
		if err := Leaks(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Leaks finds goroutines that are left. It looks again for a while, as nothing tells that one has ended.
func Leaks(options ...goleak.Option) (err error) {
	for began := time.Now(); time.Since(began) < 20*time.Second; {
		if err = goleak.Find(options...); err == nil {
			break
		}
	}
	return err
}

// SharedZooKeeper returns a ZooKeeper of one server that all tests of the binary
// share; the first call starts it. Tests keep apart by the names of their elections,
// see [Name], and do not kill it. The test fails where ZooKeeper is not installed.
func SharedZooKeeper(t testing.TB) *ZooKeeper {
	t.Helper()
	if !shared.main {
		t.Fatal("coordtest: TestMain must call coordtest.Main, which stops the shared ZooKeeper")
	}
	shared.once.Do(func() { shared.zk, shared.err = StartZooKeeper(context.Background(), nil) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	showLogs(t, &shared.zk.Cluster)
	return shared.zk
}

// NewZooKeeper starts a ZooKeeper for one test and stops it when the test ends; see
// [StartZooKeeper]. The test fails where ZooKeeper is not installed.
func NewZooKeeper(t testing.TB, opts *ZooKeeperOptions) *ZooKeeper {
	t.Helper()
	z, err := StartZooKeeper(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(z.Stop)
	showLogs(t, &z.Cluster)
	return z
}

// showLogs shows the end of each server's log if the test fails.
func showLogs(t testing.TB, c *Cluster) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, s := range c.Servers() {
			t.Logf("log of server %s ends:\n%s", s.Addr(), s.LogTail(failureLines))
		}
	})
}

// Refused returns an address that refuses connections until the test ends. Its port is that of a
// client that is connected, so that nobody else can get it and listen there.
func Refused(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client.LocalAddr().String()
}

// Name returns the name of an election that nobody has used before: the test's own
// name and a random number.
func Name(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_':
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%.100s-%08x", name, rand.Uint32())
}

// IgnoreServers lets a leak check in a single test pass over the goroutines that
// watch over running servers.
func IgnoreServers() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/succession-dev/succession/internal/rig/coordtest.(*process).run")
}
