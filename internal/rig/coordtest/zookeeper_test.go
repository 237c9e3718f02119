package coordtest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// childEnv makes the test binary start the coordinator of that name, say so, and wait
// to be killed.
const childEnv = "COORDTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
	}
	coordtest.Main(m, 8)
}

func child() {
	var err error
	switch name := os.Getenv(childEnv); name {
	case "ZooKeeper":
		_, err = coordtest.StartZooKeeper(context.Background(), nil)
	case "etcd":
		_, err = coordtest.StartEtcd(context.Background(), &coordtest.EtcdOptions{Nodes: 3, Links: true})
	default:
		err = fmt.Errorf("no coordinator %q", name)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

func TestSharedServesRealClients(t *testing.T) {
	z := coordtest.SharedZooKeeper(t)
	if again := coordtest.SharedZooKeeper(t); again != z {
		t.Error("a second call started a second ZooKeeper")
	}
	c := client(t, z.Addrs()...)
	path := "/" + coordtest.Name(t)
	if _, err := c.Create(path, []byte("v"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.GetW(path); err != nil {
		t.Fatal(err)
	}

	text := fourLetter(t, z.Addrs()[0], "wchp")
	watches, err := coordtest.ParseWatches(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := watches[path]; len(got) != 1 || got[0] != c.SessionID() {
		t.Errorf("%s is watched by %x, want session %x alone", path, got, c.SessionID())
	}
	sum, err := coordtest.ParseWatchSummary(fourLetter(t, z.Addrs()[0], "wchs"))
	if err != nil {
		t.Fatal(err)
	}
	if sum.Watches < 1 || sum.Connections < 1 || sum.Paths < 1 {
		t.Errorf("wchs says %+v while a watch stands", sum)
	}
	figures, err := coordtest.ParseMonitor(fourLetter(t, z.Addrs()[0], "mntr"))
	if err != nil {
		t.Fatal(err)
	}
	if got := figures["zk_server_state"]; got != "standalone" {
		t.Errorf("zk_server_state = %q, want standalone", got)
	}
}

func TestServerLifecycle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	z := coordtest.NewZooKeeper(t, &coordtest.ZooKeeperOptions{Dir: dir})
	s := z.Servers()[0]
	addr := s.Addr()
	write(t, addr, "/kept")

	s.Kill()
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Fatal("somebody listens after Kill")
	}
	if err := s.Pause(); err == nil {
		t.Error("a killed server could be paused")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr {
		t.Errorf("address is %s after Restart, want %s", s.Addr(), addr)
	}
	if !exists(t, addr, "/kept") {
		t.Error("Restart lost the data")
	}

	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if answer, err := coordtest.FourLetter(ctx, addr, "ruok"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused server answered %q, %v", answer, err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := fourLetter(t, addr, "ruok"); got != "imok" {
		t.Errorf("a resumed server says %q", got)
	}

	if err := s.Wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exists(t, addr, "/kept") {
		t.Error("Wipe left the data")
	}

	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	z.Stop() // ends a paused server, too
	z.Stop()
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*", "log"))
	if err != nil || len(logs) != 1 {
		t.Errorf("logs in the folder that the options named: %v, %v; want one", logs, err)
	}
}

func TestStopRemovesTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	z, err := coordtest.StartZooKeeper(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) == 0 {
		t.Fatalf("nothing is in the temporary folder while the server runs: %v", err)
	}
	z.Stop()
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("Stop left %s", e.Name())
	}
}

// Another ZooKeeper that has got the port is not taken for the one that lost it.
func TestRestartReportsLostPort(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, nil)
	s := z.Servers()[0]
	s.Kill()
	l, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer l.Close()
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed above
			}
			// Whatever the question is.
			_, _ = io.WriteString(conn, "Mode: standalone\ndataDir=/another/version-2\n")
			conn.Close()
		}
	})
	err = s.Restart(t.Context())
	if err == nil || !strings.Contains(err.Error(), "a port is in use") {
		t.Errorf("Restart on a port that is taken: %v", err)
	}
}

func TestReadyGivesUp(t *testing.T) {
	t.Parallel()
	z := coordtest.NewZooKeeper(t, nil)
	s := z.Servers()[0]
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Ready of a paused server: %v, want that the deadline has passed", err)
	}
}

func TestStartReportsBrokenConfiguration(t *testing.T) {
	t.Parallel()
	z, err := coordtest.StartZooKeeper(t.Context(), &coordtest.ZooKeeperOptions{Config: []string{"tickTime=never"}})
	if err == nil {
		z.Stop()
		t.Fatal("a server started with a configuration that cannot be read")
	}
	for _, want := range []string{"its process has ended", "NumberFormatException"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}

func TestMissingInstallation(t *testing.T) {
	tests := []struct {
		name, path, javaHome, jar string
		want                      []string
	}{
		{name: "no java", want: []string{"java is missing", "./test servers", "apt-get install"}},
		{name: "wrong JAVA_HOME", path: os.Getenv("PATH"), javaHome: "/nowhere", want: []string{"/nowhere/bin/java", "./test servers"}},
		{name: "wrong jar", path: os.Getenv("PATH"), jar: "/nowhere/zookeeper.jar", want: []string{"/nowhere/zookeeper.jar", coordtest.ZooKeeperJarEnv}},
		{name: "wrong folder", path: os.Getenv("PATH"), jar: "/nowhere/lib/*", want: []string{"/nowhere/lib/", coordtest.ZooKeeperJarEnv}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", tt.path)
			t.Setenv("JAVA_HOME", tt.javaHome)
			t.Setenv(coordtest.ZooKeeperJarEnv, tt.jar)
			z, err := coordtest.StartZooKeeper(t.Context(), nil)
			if err == nil {
				z.Stop()
				t.Fatal("ZooKeeper started")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not say %q: %v", want, err)
				}
			}
		})
	}
}

// A test binary that is killed must not leave its servers behind.
func TestServersDieWithTheTestBinary(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, servers := range map[string]int{"ZooKeeper": 1, "etcd": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir() // the servers' folders are in it
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), childEnv+"="+name, "TMPDIR="+dir)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal("the child did not start its servers:", err)
			}
			if n := processes(t, dir); n != servers {
				t.Errorf("%d servers run, want %d", n, servers)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			// The error says that it was killed.
			_ = cmd.Wait()
			eventually(t, "the servers of a killed test binary end", func(context.Context) bool { return processes(t, dir) == 0 })
		})
	}
}

// processes counts the processes that have dir in their arguments.
func processes(t *testing.T, dir string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		// One that cannot be read has ended meanwhile.
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(dir)) {
			n++
		}
	}
	return n
}

func client(t *testing.T, addrs ...string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(addrs, 30*time.Second, zk.WithLogger(discard{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

type discard struct{}

func (discard) Printf(string, ...any) {}

func write(t *testing.T, addr, path string) {
	t.Helper()
	ask(t, addr, func(c *zk.Conn) error {
		_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) { // an earlier request has done it
			return nil
		}
		return err
	})
}

func exists(t *testing.T, addr, path string) (ok bool) {
	t.Helper()
	ask(t, addr, func(c *zk.Conn) (err error) {
		ok, _, err = c.Exists(path)
		return err
	})
	return ok
}

// ask sends a request to the server, again while the connection is lost: it may have no quorum for a moment.
func ask(t *testing.T, addr string, request func(*zk.Conn) error) {
	t.Helper()
	c := client(t, addr)
	defer c.Close()
	var err error
	eventually(t, "the server answers", func(context.Context) bool {
		err = request(c)
		return !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func fourLetter(t *testing.T, addr, command string) string {
	t.Helper()
	text, err := coordtest.FourLetter(t.Context(), addr, command)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
