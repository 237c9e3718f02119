//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/memory"
)

// The URL madeup:NAME is the coordinator memory:NAME, and madeup://HOST/NAME is that too if a server answers at the host.
const question, answer = "who are you?\n", "the made-up one"

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:  madeUpScheme,
		Open:    openMadeUp,
		Title:   "Made-Up",
		Example: "madeup://h1:1/app",
		About:   "what a test has made up",
		Port:    "1",
		Probe:   coordinator.Probe{Ask: question, Answers: []string{answer}},
		Rights: func(u *coordinator.URL, election string) (string, error) {
			return fmt.Sprintf("grant all on %s/%s\n", u.Path, election), nil
		},
		Operator: func(u *coordinator.URL) (coordinator.Operator, error) { return &madeUpActs, nil },
		Slack:    func(ttl time.Duration) time.Duration { return ttl / 2 },
		Unfit:    map[string]string{"L3.leave": "it is made up"},
	})
}

func openMadeUp(u *coordinator.URL) (backend.Backend, error) {
	b, err := succession.Open("memory:" + strings.Trim(u.Path, "/"))
	return madeUpBackend{b, u.HostPorts("1")}, err
}

type madeUpBackend struct {
	backend.Backend
	addrs []string
}

func (b madeUpBackend) Session(ctx context.Context) (backend.Session, error) {
	for _, addr := range b.addrs {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		fmt.Fprint(conn, question)
		if said, _ := bufio.NewReader(conn).ReadString('\n'); strings.TrimSpace(said) != answer {
			return nil, fmt.Errorf("%w: somebody else is at %s", backend.ErrUnavailable, addr)
		}
	}
	return b.Backend.Session(ctx)
}

// madeUpActs are the acts of the operator of all coordinators, which counts them.
var madeUpActs acts

const madeUpName = "for-the-made-up-driver"

type acts struct {
	mu                        sync.Mutex
	removed, dropped, cleared int
}

func (a *acts) act(n *int, do func(*memory.Coordinator)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	*n++
	c, err := memory.Named(madeUpName, nil)
	if err == nil {
		do(c)
	}
	return err
}

func (a *acts) Exists(context.Context, string) (bool, error) { return false, nil }

func (a *acts) Remove(_ context.Context, m backend.Member) error {
	return a.act(&a.removed, func(c *memory.Coordinator) { c.Remove(m.Line, m.Key) })
}

func (a *acts) Drop(_ context.Context, election string) error {
	return a.act(&a.dropped, func(c *memory.Coordinator) { c.Drop(election) })
}

func (a *acts) Clear(_ context.Context, name string) error {
	if name != "suite" {
		return errors.New("it is " + name)
	}
	return a.act(&a.cleared, func(*memory.Coordinator) {})
}

// A driver that no other file names has its place in all that the command says of drivers.
func TestMadeUpDriver(t *testing.T) {
	check := func(t *testing.T, wantCode int, want string, args ...string) {
		t.Helper()
		watch := calm.Start(t)
		code, stdout, stderr := here(args...)
		if (code != wantCode || !strings.Contains(stdout+stderr, want)) && !watch.NotJudged(probeBound, "%q: it says %q", args, stderr) {
			t.Errorf("%q: exit code %d, want %d; output\n%s%s\nwant in it\n%s", args, code, wantCode, stdout, stderr, want)
		}
	}
	t.Run("completion", func(t *testing.T) {
		check(t, 0, "madeup://\twhat a test has made up\n", "__complete", "leader", "--url", "m")
		check(t, 0, "full:\n", "__complete", "leader", "--url", "f") // it tells nothing of itself
	})
	t.Run("help", func(t *testing.T) {
		check(t, 0, "  madeup://h1:1/app                  what a test has made up\n", "--help")
	})
	t.Run("rights", func(t *testing.T) {
		check(t, 0, "grant all on /app/jobs\n", "rights", "--url", "madeup://h1/app", "jobs")
		check(t, ui.ExitFailed, "name one of these with --url: Consul, etcd, Kubernetes, Made-Up, PostgreSQL, ZooKeeper\n", "rights", "--url", "full:app", "jobs")
	})
	t.Run("conformance", func(t *testing.T) {
		if _, err := memory.Named(madeUpName, &memory.Options{TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
		url := "madeup:" + madeUpName
		code, stdout, stderr := here("--url", url, "conformance", "--prefix", "suite", "--faults", "remove,drop",
			"--rule", "G4.order", "--rule", "L2.removed", "--rule", "L3.dropped", "--rule", "L3.leave", "--rule", "L3.cut")
		if !judged(t, stdout) {
			return
		}
		if code != 0 || !strings.Contains(stdout, "3 passed, 0 failed, 0 waived, 1 impossible, 1 not wired") ||
			!strings.Contains(stdout, "(it is made up)") || !strings.Contains(stdout, "(no Cut: the URL names no server to put a proxy in front of)") {
			t.Errorf("exit code %d, output\n%s%s", code, stdout, stderr)
		}
		if madeUpActs.removed == 0 || madeUpActs.dropped == 0 || madeUpActs.cleared != 1 {
			t.Errorf("the operator has removed %d, dropped %d and cleared %d times", madeUpActs.removed, madeUpActs.dropped, madeUpActs.cleared)
		}
		check(t, ui.ExitFailed, "full:x: nobody could clear up after the suite: the driver of full brings no operator: unsupported operation\n", "conformance", "--url", "full:x")
	})
	t.Run("addresses", func(t *testing.T) {
		closed := coordtest.Refused(t)
		_, port, _ := net.SplitHostPort(closed)
		itself := listener(t, func(c net.Conn) {
			go func() {
				defer c.Close()
				if asked, _ := bufio.NewReader(c).ReadString('\n'); asked == question {
					fmt.Fprintln(c, answer)
				}
			}()
		})
		web, secure := serveHTTP(t, (*httptest.Server).Start), serveHTTP(t, (*httptest.Server).StartTLS)
		for url, want := range map[string]string{
			"madeup://" + closed + "/x":                "nothing listens on port " + port + " of 127.0.0.1; is Made-Up up, and the port right?\n",
			"madeup://127.0.0.1/x":                     "nothing listens on port 1 of 127.0.0.1; is Made-Up up, and the port right?\n",
			"madeup://" + web + "/x":                   web + " is an HTTP server, not Made-Up; is the port right?\n",
			"madeup://" + secure + "/x":                secure + " speaks TLS from the first byte on, which the driver of Made-Up does not\n",
			"etcd://" + itself + "/x?connect=1s":       itself + " is Made-Up, not etcd; write madeup://" + itself + "\n",
			"madeup://" + itself + "," + closed + "/x": closed, // the driver's own error: one of them is as it should be
		} {
			check(t, ui.ExitFailed, want, "--url", url, "leader", "reports")
		}
		check(t, ui.ExitNobody, "nobody leads", "--url", "madeup://"+itself+"/made-up-address", "leader", "reports")
	})
	t.Run("version", func(t *testing.T) {
		if _, stdout, _ := here("version", "-o", "json"); !slices.Contains(strings.FieldsFunc(stdout, func(r rune) bool { return strings.ContainsRune(`[],":`, r) }), madeUpScheme) {
			t.Errorf("version lacks it: %s", stdout)
		}
	})
}
