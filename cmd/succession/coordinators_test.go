//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/succession-dev/succession/cmd/succession/internal/migrate"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// coordinators are those that need a server, and how to get the URL of one.
var coordinators = []struct {
	scheme string
	start  func(t *testing.T) (addr string)
	ttl    time.Duration // a short session time
}{
	{"zookeeper", func(t *testing.T) string { return coordtest.SharedZooKeeper(t).Addrs()[0] }, 2 * time.Second},
	{"etcd", func(t *testing.T) string { return coordtest.NewEtcd(t, nil).Addrs()[0] }, 2 * time.Second},
	{"consul", func(t *testing.T) string { return coordtest.NewConsul(t, nil).Addrs()[0] }, time.Second}, // Consul ends a session after twice that
}

// TestCoordinators says of each coordinator what the command promises of all.
func TestCoordinators(t *testing.T) {
	for _, c := range coordinators {
		t.Run(c.scheme, func(t *testing.T) {
			t.Parallel()
			addr := c.start(t)
			short := fmt.Sprintf("%s://%s/command?ttl=%v", c.scheme, addr, c.ttl)
			url := fmt.Sprintf("%s://%s/command?ttl=%v&connect=30s", c.scheme, addr, 4*c.ttl) // a slow machine ends no session
			t.Run("demo", func(t *testing.T) {
				code, stdout, stderr := here("--url", url, "demo", "--hold", "1ms")
				if code != 0 || !strings.Contains(stdout, "4 exits woke 4 candidates") {
					t.Errorf("exit code %d; output\n%s\nstandard error: %s", code, stdout, stderr)
				}
			})
			t.Run("TERM", func(t *testing.T) { takesOver(t, url, syscall.SIGTERM, 143) })
			t.Run("looking", func(t *testing.T) { looksOnly(t, c.scheme, addr) })
			t.Run("page", func(t *testing.T) { pausesOnPage(t, url) })
			t.Run("lines", func(t *testing.T) { listsLines(t, url) })
			t.Run("conformance", func(t *testing.T) { conforms(t, short) })
			// These wait for the ends of sessions, beside one another.
			for name, waits := range map[string]func(t *testing.T, url string){
				"KILL":        func(t *testing.T, url string) { takesOver(t, url, syscall.SIGKILL, -9) },
				"STOP":        standsStill,
				"waiter STOP": waiterStandsStill,
				"recipes":     shares,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					waits(t, url)
				})
			}
		})
	}
}

// looksOnly checks that commands that look at what nobody has used make nothing there, not even the
// path of the URL.
func looksOnly(t *testing.T, scheme, addr string) {
	name := coordtest.Name(t)
	folder := strings.ReplaceAll(name, "/", "-")
	for _, args := range []string{
		"leader NAME", "line NAME", "history NAME", "resign NAME", "get NAME", "delete NAME", "queue list NAME", "group list NAME",
		"--timeout 1s watch NAME", "--timeout 1s follow NAME", "--timeout 1s group watch NAME",
	} {
		cmd := command(append([]string{"--url", scheme + "://" + addr + "/" + folder}, strings.Fields(strings.ReplaceAll(args, "NAME", name))...)...)
		p := startCommand(t, cmd)
		if strings.HasPrefix(args, "--timeout") { // it goes on until it is told to end
			p.next()
			p.signal(syscall.SIGTERM)
		}
		waitCode(t, p.cmd)
	}
	if made := stored(t, scheme, addr); slices.ContainsFunc(made, func(key string) bool { return strings.Contains(key, folder) }) {
		t.Errorf("looking has made %q", made)
	}
}

// stored returns the keys that a coordinator has at the top, by its own client.
func stored(t *testing.T, scheme, addr string) []string {
	t.Helper()
	switch scheme {
	case "zookeeper":
		conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		children, _, err := conn.Children("/")
		if err != nil {
			t.Fatal(err)
		}
		return children
	case "etcd":
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		all, err := client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, kv := range all.Kvs {
			keys = append(keys, string(kv.Key))
		}
		return keys
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/v1/kv/?keys")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound { // there is none
		return nil
	}
	var keys []string
	if err := json.NewDecoder(resp.Body).Decode(&keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

// takesOver checks that when sig has hit the first, the second's command runs, once,
// with a larger token.
func takesOver(t *testing.T, url string, sig syscall.Signal, code int) {
	name := coordtest.Name(t)
	log := filepath.Join(t.TempDir(), "log")
	script := `echo "$SUCCESSION_ID $SUCCESSION_TOKEN" >> ` + log + `; echo runs; exec sleep 1000`
	first := start(t, "--url", url, "run", "--id", "web-1", name, "--", "sh", "-c", script)
	first.line("runs")
	t1 := first.event("started").Token
	second := start(t, "--url", url, "run", "--id", "web-2", name, "--", "sh", "-c", script)
	if e := second.event("waiting"); e.Behind != "web-1" {
		t.Errorf("waits behind %q, want web-1", e.Behind)
	}
	first.signal(sig)
	first.exits(code)
	second.line("runs")
	t2 := second.event("started").Token
	if t2 <= t1 {
		t.Errorf("token %d after %d: tokens must grow", t2, t1)
	}
	first.nothingLeft()
	if code, stdout, stderr := here("--url", url, "--timeout", "1m", "leader", name); code != 0 || stdout != "web-2\n" {
		t.Errorf("leader: exit code %d, output %q, standard error %q", code, stdout, stderr)
	}
	second.signal(syscall.SIGTERM)
	second.exits(143)
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	want := "web-1 " + strconv.FormatUint(t1, 10) + "\nweb-2 " + strconv.FormatUint(t2, 10) + "\n"
	if string(b) != want {
		t.Errorf("the commands that ran:\n%swant\n%s", b, want)
	}
}

// shares checks a record, and that an item and a presence go with a process that was killed.
func shares(t *testing.T, url string) {
	name := coordtest.Name(t)
	code, version, stderr := here("--url", url, "--timeout", "1m", "set", "--at", "absent", name+"/r", "old")
	if code != 0 {
		t.Fatalf("set: exit code %d, standard error %s", code, stderr)
	}
	here("--url", url, "--timeout", "1m", "set", "--at", strings.TrimSpace(version), name+"/r", "new")
	checkOutput(t, []string{"--url", url, "get", name + "/r"}, 0, "new")
	checkOutput(t, []string{"--url", url, "delete", name + "/r"}, 0, "")

	checkOutput(t, []string{"--url", url, "queue", "put", name, "a"}, 0, "")
	w := start(t, "--url", url, "group", "watch", "-o", "json", name)
	w.line("[]")
	p := start(t, "--url", url, "group", "join", "--id", "web-1", name)
	w.line(fmt.Sprintf(`[{"id":"web-1","token":%d}]`, p.event("elected").Token))
	first := start(t, "--url", url, "queue", "take", name, "--", "sleep", "1000")
	t1 := first.event("started").Token
	second := start(t, "--url", url, "queue", "take", name, "--", "cat")
	second.event("turn")
	for _, killed := range []*process{p, first} {
		killed.signal(syscall.SIGKILL)
		killed.exits(-9)
	}
	second.line("a")
	if t2 := second.event("started").Token; t2 <= t1 {
		t.Errorf("token %d after %d: tokens must grow", t2, t1)
	}
	second.exits(0)
	checkOutput(t, []string{"--url", url, "queue", "list", name}, 0, "")
	w.line("[]")
}

// TestRestartOutlastsAnOutage says that an outage of the coordinator, which costs a
// leader its term, does not end its process where that is to go on, which says meanwhile that it
// does not stand in line.
func TestRestartOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	e, name := coordtest.NewEtcd(t, nil), coordtest.Name(t)
	p := start(t, "--url", "etcd://"+e.Addrs()[0]+"/command?ttl=6s&connect=1s", "run", "--restart", "--serve", "0", name, "--", "sh", "-c", "echo runs; exec sleep 1000")
	at := p.event("serving").Address
	p.line("runs")
	first := p.event("started").Token
	inLine(t, at, name, 1)
	e.Kill()
	p.event("lost")
	p.event("resigned")
	for range 2 {
		p.event("retrying")
	}
	inLine(t, at, name, 0)
	if err := e.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.line("runs")
	if second := p.event("started").Token; second <= first {
		t.Errorf("token %d after %d", second, first)
	}
	p.signal(syscall.SIGTERM)
	p.exits(143)
}

// TestCutoverTakesTheDeadlineAway says that a command runs on, in the same term, when
// the election moves from a coordinator with a session time to this machine, which has
// none.
func TestCutoverTakesTheDeadlineAway(t *testing.T) {
	t.Parallel()
	name := coordtest.Name(t)
	from, to := "etcd://"+coordtest.NewEtcd(t, nil).Addrs()[0]+"/command?ttl=6s&connect=30s", localURL(t)
	p := start(t, "--url", migrate.BothURL(from, to)+"&begin=true", "run", name, "--", "sh", "-c", "echo runs; exec sleep 1000")
	p.line("runs")
	p.event("started")
	if code, _, stderr := here("--timeout", "1m", "migrate", "cutover", name, "--from", from, "--to", to, "--yes"); code != 0 {
		t.Fatalf("cutover: exit code %d, standard error: %s", code, stderr)
	}
	select {
	case e := <-p.events:
		t.Fatalf("after the cutover: %+v", e)
	case <-time.After(12 * time.Second): // twice the session time; it can miss a mistake, but never report one that is none
	}
	p.signal(syscall.SIGTERM)
	p.exits(143)
}

// conforms exercises some rules for each fault.
func conforms(t *testing.T, url string) {
	prefix := coordtest.Name(t)
	dir := t.TempDir()
	// A process, as it starts itself again.
	cmd := command("--url", url, "conformance", "-o", "json", "--faults", "all", "--prefix", prefix, "--report", dir, "--parallel", "4",
		"--rule", "L1.end", "--rule", "L1.lost-answer", "--rule", "L3.cut", "--rule", "L3.kill", "--rule", "L3.dropped", "--rule", "L3.same-key", "--rule", "Pin.closed", "--rule", "Pin.expired",
		"--rule", "L6.old-answer", "--rule", "G3.removed", "--rule", "G7.margin", "--rule", "G9.c*",
		"--rule", "Fault.mute", "--rule", "Fault.severed", "--rule", "Fault.hidden", "--rule", "Fault.stopped", "--rule", "Fault.suspended")
	stdout, err := cmd.Output()
	calm := judged(t, string(stdout))
	if err != nil && calm {
		t.Errorf("the suite: %v", err)
	}
	status := results(t, string(stdout))
	for line := range strings.Lines(string(stdout)) {
		if strings.Contains(line, `"status":"failed"`) {
			t.Errorf("the suite: %s", line)
		}
	}
	for _, id := range []string{"Fault.mute", "Fault.severed", "Fault.hidden", "Fault.stopped", "Fault.suspended",
		"L1.end", "L3.cut", "L3.kill", "L3.dropped", "L6.old-answer", "Pin.closed", "G3.removed", "G7.margin"} {
		if status[id] != conformance.Passed && status[id] != conformance.NotJudged {
			t.Errorf("%s: %q, want passed", id, status[id])
		}
	}
	for _, id := range []string{"L1.lost-answer", "Pin.expired"} {
		if status[id] != conformance.NotWired {
			t.Errorf("%s: %q, want not wired", id, status[id])
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report conformance.Report
	if err := json.Unmarshal(b, &report); err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil && calm || len(report.Results) != len(status) {
		t.Errorf("the report has %d results, of %d: %v", len(report.Results), len(status), err)
	}
	// A second run with the same prefix would be refused if the first had left anything.
	if code, stdout, stderr := here("--url", url, "conformance", "--prefix", prefix, "--rule", "L1.end"); judged(t, stdout) && code != 0 {
		t.Errorf("a second run: exit code %d, standard error %s", code, stderr)
	}
	// What is there already is not touched.
	if code, _, stderr := here("--url", url+"&connect=30s", "--timeout", "1m", "fence", prefix+"/e", "--at-least", "7"); code != 0 {
		t.Fatal(stderr)
	}
	for range 2 {
		code, stdout, stderr := here("--url", url+"&connect=30s", "--timeout", "1m", "conformance", "--prefix", prefix, "--rule", "L1.end")
		if code != ui.ExitFailed || stdout != "" || !strings.Contains(stderr, "something is stored under "+prefix) {
			t.Errorf("with something under the prefix: exit code %d, output %q, standard error %q", code, stdout, stderr)
		}
	}
}

// judged reports whether the machine was calm enough to judge all rules. If it was not, the test's log
// says so.
func judged(t *testing.T, stdout string) bool {
	t.Helper()
	for line := range strings.Lines(stdout) {
		if strings.Contains(line, "not judged") {
			t.Logf("calm: not judged: %s", strings.TrimSpace(line))
			return false
		}
	}
	return true
}

// results reads the output of conformance -o json: how each rule fared.
func results(t *testing.T, stdout string) map[string]conformance.Status {
	t.Helper()
	status := make(map[string]conformance.Status)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for i, line := range lines {
		var r struct {
			conformance.Result
			Summary *conformance.Counts
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		switch {
		case r.Summary != nil && i == len(lines)-1:
			if n := r.Summary.Passed + r.Summary.Failed + r.Summary.Impossible + r.Summary.NotWired + r.Summary.NotJudged; n != len(status) {
				t.Errorf("the summary counts %d rules, of %d", n, len(status))
			}
		case r.ID == "" || status[r.ID] != "":
			t.Fatalf("line %d is neither a rule that was not there nor the summary at the end: %s", i+1, line)
		default:
			status[r.ID] = r.Status
		}
	}
	return status
}

// A rule about time says nothing on a coordinator that answers late, whether it passes or fails there.
func TestSlowIsNotJudged(t *testing.T) {
	t.Parallel()
	p, err := proxy.Start(coordtest.NewEtcd(t, nil).Addrs()[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Delay(proxy.ToServer, 100*time.Millisecond)
	for _, latency := range []string{"10s", "1ms"} { // which it keeps, and which it does not
		t.Run(latency, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := here("--url", "etcd://"+p.Addr()+"/?ttl=2s&connect=30s", "conformance", "--latency", latency, "--rule", "L3.leave")
			for _, want := range []string{"not judged (too busy each time: timers up to ", ", a plain request answered after up to ", ": 0 passed, 0 failed, 0 waived, 0 impossible, 0 not wired, 1 not judged, in "} {
				if !strings.Contains(stdout, want) {
					t.Errorf("with a latency of %s the output lacks %q:\n%s", latency, want, stdout)
				}
			}
			if code != ui.ExitFailed || !strings.Contains(stderr, "the machine or the coordinator was too busy to judge 1 of 1 rules") {
				t.Errorf("with a latency of %s: exit code %d, standard error %s", latency, code, stderr)
			}
		})
	}
}
