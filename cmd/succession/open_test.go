//go:build linux

package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// listener listens on a port of its own and hands each connection to serve, which
// need not close it.
func listener(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var conns []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			conns = append(conns, c)
			serve(c)
		}
		for _, c := range conns {
			c.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l.Addr().String()
}

// serveHTTP serves pages that are no coordinator's.
func serveHTTP(t *testing.T, start func(*httptest.Server)) (addr string) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(s)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// probeBound is how long a server has to say what it is.
const probeBound = 400 * time.Millisecond

// TestWrongAddress says what a stranger reads who has got the address wrong, and that
// it takes no more than five seconds.
func TestWrongAddress(t *testing.T) {
	addrs := map[string]string{
		"closed": coordtest.Refused(t),
		"silent": listener(t, func(net.Conn) {}),
		"rude":   listener(t, func(c net.Conn) { c.Close() }),
		"http":   serveHTTP(t, (*httptest.Server).Start),
		"tls":    serveHTTP(t, (*httptest.Server).StartTLS),
	}
	for _, c := range coordinators {
		addrs[c.scheme] = c.start(t)
	}
	addrs["strict"] = listener(t, func(c net.Conn) { // wants a certificate that nobody has
		go func() {
			tls.Server(c, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return nil, fmt.Errorf("nobody is let in")
			}}).Handshake()
			c.Close()
		}()
	})
	type attempt struct {
		name, want     string // what standard error must hold
		args           []string
		code           int
		stdout, stderr string
		notJudged      bool
	}
	wrong := func(a *attempt) bool {
		lines := 1
		if a.name == "run" {
			lines = 2 // the first names the coordinator
		}
		return a.code != ui.ExitFailed || a.stdout != "" || !strings.Contains(a.stderr, a.want) ||
			!strings.Contains(a.stderr, ": not reached") || strings.Count(a.stderr, "\n") != lines
	}
	var attempts []*attempt
	try := func(name, want string, args ...string) {
		attempts = append(attempts, &attempt{name: name, want: want, args: args})
	}
	titles := map[string]string{"zookeeper": "ZooKeeper", "etcd": "etcd", "consul": "Consul"}
	for scheme, title := range titles {
		for at, addr := range addrs {
			host, port, _ := net.SplitHostPort(addr)
			says := addr + " is " + titles[at] + ", not " + title + "; write " + at + "://" + addr
			switch at {
			case scheme:
				continue
			case "closed":
				says = "nothing listens on port " + port + " of " + host + "; is " + title + " up, and the port right?"
			case "silent":
				says = addr + " accepts connections and does not answer; is it stuck, or something else than " + title + "?"
			case "rude":
				says = addr + " does not answer as " + title + " does; is the port right?"
			case "http":
				says = addr + " is an HTTP server, not " + title + "; is the port right?"
			case "tls", "strict":
				says = addr + " speaks TLS; add tls=on to the URL"
				if scheme == "consul" {
					says = addr + " speaks TLS; add tls=on to the URL"
				}
			}
			try(scheme+" at "+at, ": "+says+"\n", "--url", scheme+"://"+addr+"/app", "leader", "reports")
		}
	}
	try("several", "; "+addrs["silent"]+" accepts connections and", "--url", "etcd://"+addrs["closed"]+","+addrs["silent"], "leader", "reports")
	try("run", "nothing listens on port ", "--url", "zookeeper://"+addrs["closed"], "run", "--connect-timeout", "0", "--log", "text", "reports", "--", "echo", "never")
	try("demo", "nothing listens on port ", "--url", "consul://"+addrs["closed"], "demo")
	try("conformance", "is Consul, not etcd", "--url", "etcd://"+addrs["consul"], "conformance")
	var wg sync.WaitGroup
	free := make(chan struct{}, 4) // more of them would be late for one another
	for _, a := range attempts {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			watch := calm.Start(t)
			a.code, a.stdout, a.stderr = here(a.args...)
			a.notJudged = wrong(a) && watch.NotJudged(probeBound, "%s: it says %q", a.name, a.stderr)
			watch.Within(5*time.Second, "%s: it", a.name)
		})
	}
	wg.Wait()
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			if wrong(a) && !a.notJudged {
				t.Errorf("exit code %d, output %q, standard error\n%s\nwant in it\n%s", a.code, a.stdout, a.stderr, a.want)
			}
		})
	}
	if code, _, stderr := here("--url", "etcd://"+addrs["closed"]+","+addrs["etcd"]+"?connect=30s", "--timeout", "1m", "leader", "reports"); code != ui.ExitNobody {
		t.Errorf("with one server of two that is up: exit code %d, standard error %q", code, stderr)
	}
}

// TestWrongURL says what a stranger reads whose URL cannot be right, in full.
func TestWrongURL(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ url, says string }{
		{"redis://h1", `invalid URL: unknown scheme "redis"; known are consul, etcd, full, kubernetes, late, local, madeup, memory, migrate, postgres, postgresql, rival, spread, zookeeper`},
		{"h1:2181", `invalid URL: unknown scheme "h1"; known are consul, etcd, full, kubernetes, late, local, madeup, memory, migrate, postgres, postgresql, rival, spread, zookeeper`},
		{"zookeeper", `invalid URL: want scheme://host:port/path or scheme:path, such as "zookeeper://h1:2181,h2:2181/app" or "local:/var/lib/app"`},
		{"zookeeper:///app", "zookeeper: open: invalid URL zookeeper:/app: name the servers, as in zookeeper://h1:2181,h2:2181/app"},
		{"etcd:", "etcd: open: invalid URL etcd:: it names no host; write etcd://host:2379"},
		{"etcd://h1:port", `invalid URL: host 1: the port must be a number from 1 to 65535`},
		{"etcd://root:hunter2@h1", "invalid URL: it carries a user name or password; name a file or an environment variable in a parameter instead"},
		{"consul://h1,h2", "consul: open: invalid URL consul://h1,h2: name one agent, best the one on this machine; it knows the servers"},
		{"etcd://h1?ttl=10", `etcd: open: invalid URL etcd://h1?ttl=10: parameter ttl="10" is not a duration such as 10s`},
		{"local:" + dir + "?ttl=10s", "local: open: invalid URL local:" + dir + `?ttl=redacted: unknown parameter "ttl"; there are none`},
		{"local://h1/app", "local: open: invalid URL local://h1/app: the folder is on this machine; write local:/path, without a host"},
		{"local:" + open, "local: open: permission denied: " + open + " is open to everybody's writing; use a folder of your own, or chmod o-w it"},
		{"local:" + file, "local: open: invalid folder " + file + ": it is not a folder"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			for _, args := range [][]string{{"leader", "reports"}, {"demo"}, {"conformance"}} {
				code, stdout, stderr := here(append([]string{"--url", tt.url}, args...)...)
				if want := "succession: " + tt.says + "\n"; code != ui.ExitFailed || stdout != "" || stderr != want {
					t.Errorf("%s: exit code %d, output %q, standard error\n%s\nwant\n%s", args[0], code, stdout, stderr, want)
				}
			}
		})
	}
}

// A folder without rights can be seen only by somebody who is not root, so a process
// of the user "nobody" stands in line. To look takes no rights to write.
func TestLocalWithoutRights(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"run reports -- true", ui.ExitFailed, "local: join reports: permission denied: mkdir "},
		{"leader reports", ui.ExitNobody, "nobody leads"},
	} {
		cmd := command(append([]string{"--url", "local:" + dir + "/app"}, strings.Fields(tt.args)...)...)
		if os.Geteuid() == 0 {
			asNobody(cmd)
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != tt.code || !strings.Contains(string(out), tt.says) {
			t.Errorf("%s: %v: output %q, want %q in it", tt.args, err, out, tt.says)
		}
	}
}

// A coordinator that is there and cannot serve is not accused of being something
// else.
func TestDiagnosisKnowsItsOwn(t *testing.T) {
	t.Parallel()
	etcd := coordtest.NewEtcd(t, &coordtest.EtcdOptions{Nodes: 3})
	for _, s := range etcd.Servers()[1:] {
		s.Kill()
	}
	url := "etcd://" + etcd.Addrs()[0]
	code, _, stderr := here("--url", url, "leader", "reports")
	if code != ui.ExitFailed || !strings.Contains(stderr, url+": no answer within ") && !strings.Contains(stderr, "etcd: session: ") || strings.Contains(stderr, "not etcd") {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}

// An agent of Consul that takes no more connections of this machine is still Consul, and what to do is said.
func TestCrowdedConsul(t *testing.T) {
	t.Parallel()
	const most = 5
	addr := coordtest.NewConsul(t, &coordtest.ConsulOptions{Config: []string{fmt.Sprintf("limits{http_max_conns_per_client=%d}", most)}}).Addrs()[0]
	for range most + 1 { // the client that started it may still have one
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for scheme, want := range map[string]string{"consul": "http_max_conns_per_client", "etcd": "is Consul, not etcd"} {
		watch := calm.Start(t)
		code, _, stderr := here("--url", scheme+"://"+addr+"/app", "leader", "reports")
		right := code == ui.ExitFailed && strings.Contains(stderr, want) && !strings.Contains(stderr, "an HTTP server")
		if !right && !watch.NotJudged(probeBound, "%s: it says %q", scheme, stderr) {
			t.Errorf("%s: exit code %d, standard error %q, want in it %q", scheme, code, stderr, want)
		}
	}
}

// A coordinator inside of this process would elect everybody: each process has its own.
func TestOpenInProcess(t *testing.T) {
	code, _, stderr := result(t, "--url", "memory:x", "run", "reports", "--", "true")
	if code != ui.ExitFailed || !strings.Contains(stderr, "nobody else would see memory:") {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
	if _, stdout, _ := result(t, "version"); strings.Contains(stdout, "memory") {
		t.Errorf("it offers memory:\n%s", stdout)
	}
}
