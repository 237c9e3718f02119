//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/metrics/health"
)

// probe asks a process that serves at addr, and returns the status and the body.
func probe(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	r, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// inLine fails the test unless the probe and the series of the process at addr say whether it stands in line for name: in is 1 or 0.
func inLine(t *testing.T, addr, name string, in int) {
	t.Helper()
	status, body := http.StatusServiceUnavailable, fmt.Sprintf("{\"ready\":false,\"outside\":[%q]}\n", name)
	if in == 1 {
		status, body = http.StatusOK, "{\"ready\":true}\n"
	}
	if code, got := probe(t, addr, "/ready"); code != status || got != body {
		t.Errorf("/ready is answered with %d, %s; want %d, %s", code, got, status, body)
	}
	want := fmt.Sprintf("\nsuccession_in_line{election=%q} %d\n", name, in)
	if _, got := probe(t, addr, "/metrics"); !strings.Contains(got, want) {
		t.Errorf("there is no %s in\n%s", want, got)
	}
}

// The leader and who waits answer probes and Prometheus, from before they stand in line until they
// end.
func TestServe(t *testing.T) {
	for _, subcommand := range []string{"run", "lock"} {
		t.Run(subcommand, func(t *testing.T) {
			url := localURL(t)
			leader := start(t, "--url", url, subcommand, "--id", "web-1", "--serve", "0", "reports", "--", "sleep", "1000")
			first := leader.event("serving").Address
			token := leader.event("elected").Token
			leader.event("started")
			waiter := start(t, "--url", url, subcommand, "--id", "web-2", "--serve", "127.0.0.1:0", "reports", "--", "sleep", "1000")
			second := waiter.event("serving").Address
			waiter.event("waiting")

			leads := func(addr string, want health.Standing) {
				t.Helper()
				status, value := http.StatusServiceUnavailable, "0"
				if want.Leader {
					status, value = http.StatusOK, "1"
				}
				var got health.Standing
				code, body := probe(t, addr, "/leader")
				if err := json.Unmarshal([]byte(body), &got); err != nil || code != status || got != want {
					t.Errorf("/leader is answered with %d, %s; want %d, %+v", code, body, status, want)
				}
				if _, body := probe(t, addr, "/metrics"); !strings.Contains(body, "\nsuccession_leader{election=\"reports\"} "+value+"\n") {
					t.Errorf("the value of succession_leader is not %s:\n%s", value, body)
				}
				inLine(t, addr, "reports", 1)
				if _, body := probe(t, addr, "/metrics"); strings.Contains(body, "\nsuccession_recipe{") != (subcommand == "lock") {
					t.Errorf("the series tell a recipe, or do not:\n%s", body)
				}
				if code, body := probe(t, addr, "/live"); code != http.StatusOK || body != "{\"live\":true}\n" {
					t.Errorf("/live is answered with %d, %s", code, body)
				}
			}
			leads(first, health.Standing{Leader: true, ID: "web-1", Token: token})
			leads(second, health.Standing{ID: "web-2"})

			leader.signal(syscall.SIGTERM)
			leader.exits(143)
			if conn, err := net.Dial("tcp", first); err == nil {
				conn.Close()
				t.Error("somebody listens where the leader has served")
			}
			token = waiter.event("elected").Token
			leads(second, health.Standing{Leader: true, ID: "web-2", Token: token})
			waiter.signal(syscall.SIGTERM)
			waiter.exits(143)
		})
	}
}

// An address that is taken, or none, is an error, and nobody has stood in line.
func TestServeRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"taken":         {[]string{"run", "--serve", l.Addr().String()}, "somebody else listens there"},
		"no address":    {[]string{"run", "--serve", "everywhere"}, "give a port"},
		"too large":     {[]string{"run", "--serve", ":65536"}, "give a port"},
		"another's":     {[]string{"run", "--serve", "192.0.2.1:0"}, "--serve 192.0.2.1:0"},
		"shared lock":   {[]string{"lock", "--serve", "0", "--shared"}, "serve shared"},
		"several slots": {[]string{"lock", "--serve", "0", "--slots", "3"}, "serve slots"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := result(t, append(append([]string{"--url", localURL(t)}, tt.args...), "reports", "--", "true")...)
			if code != 125 || !strings.Contains(stderr, tt.says) || strings.Contains(stderr, "elected") {
				t.Errorf("exit code %d, standard error %q; want 125, and %q in it", code, stderr, tt.says)
			}
		})
	}
}

// The series tell the phase of a migration that the process takes part in.
func TestServeTellsTheMigration(t *testing.T) {
	from, to := localURL(t), localURL(t)
	if code, _, stderr := result(t, "migrate", "begin", "reports", "--from", from, "--to", to); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	both := "migrate:?" + url.Values{"from": {from}, "to": {to}}.Encode()
	p := start(t, "--url", both, "run", "--serve", "0", "reports", "--", "sleep", "1000")
	addr := p.event("serving").Address
	p.event("started")
	const want = "\nsuccession_migration_phase{election=\"reports\",phase=\"begun\"} 1\n"
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, body := probe(t, addr, "/metrics")
		if strings.Contains(body, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no %s in\n%s", want, body)
		}
	}
	p.signal(syscall.SIGTERM)
	p.exits(143)
}

// Who is not to see or do anything must not take the memory of a leader by connections, nor have it restarted.
func TestServeConnections(t *testing.T) {
	t.Parallel()
	p := start(t, "--url", localURL(t), "run", "--serve", "0", "reports", "--", "sleep", "1000")
	fewConnections(t, p.event("serving").Address, "/metrics", "connections are open already", "/live")
	p.signal(syscall.SIGTERM)
	p.exits(143)
}

// Who does not reach the coordinator is alive and not ready, so that a rollout replaces nobody by it.
func TestServeUnreached(t *testing.T) {
	t.Parallel()
	p := start(t, "--url", "etcd://127.0.0.1:1/app", "run", "--serve", "0", "reports", "--", "true")
	at := p.event("serving").Address
	p.event("connecting") // it has tried
	inLine(t, at, "reports", 0)
	if code, body := probe(t, at, "/live"); code != http.StatusOK {
		t.Errorf("/live is answered with %d, %s", code, body)
	}
	p.signal(syscall.SIGTERM)
	p.exits(143)
}
