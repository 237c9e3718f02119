package main

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// A leader whom nobody follows while it is paused stays paused: nobody leads, and it is not seen to lead on.
func TestPauseUnfollowed(t *testing.T) {
	r := run{leader: &contender{id: "a"}, next: &contender{id: "b"}, notes: newNotebook("e"), patience: 20 * time.Millisecond}
	var err error
	if r.leader.peer, err = coordtest.StartPeerProcess(coordtest.PeerOptions{ID: "a", Dir: t.TempDir()}, []string{"sleep", "60"}); err != nil {
		t.Fatal(err)
	}
	defer r.leader.stop()
	r.notes.note(coordtest.PeerEvent{Peer: r.leader.peer, At: r.notes.base, What: "elected"})
	r.faultAt = r.notes.base.Add(time.Millisecond)
	if err := pause(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	o := r.outcome()
	if !o.VacancyOpen || o.Vacancy <= 0 || o.Old != "paused" {
		t.Errorf("it shows %+v", o)
	}
}

// What comes late is noted: whether it came, and whether somebody still waited for it.
func TestLate(t *testing.T) {
	for name, c := range map[string]struct {
		answers, hangsUp bool
		missed           bool
		err              string
	}{
		"answered":           {answers: true},
		"hung up by then":    {answers: true, hangsUp: true, missed: true},
		"not answered":       {err: "the leader is not answered"},
		"hung up, no answer": {hangsUp: true, missed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			go func() {
				conn, err := server.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				b := make([]byte, 1)
				for {
					if _, err := conn.Read(b); err != nil {
						return
					}
					if c.answers {
						conn.Write(b)
					}
				}
			}()
			p, err := proxy.Start(server.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			leader, err := net.Dial("tcp", p.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer leader.Close()
			stop := make(chan struct{})
			defer close(stop)
			go func() { // heartbeats, of which the first goes through
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				sent := p.Stats().ToServer
				for {
					select {
					case <-tick.C:
						leader.Write([]byte("x"))
						if c.hangsUp && p.Stats().ToServer > sent {
							leader.Close()
							return
						}
					case <-stop:
						return
					}
				}
			}()
			r := run{leader: &contender{id: "a", proxies: []*proxy.Proxy{p}}, notes: newNotebook("e"), session: time.Second}
			err = late(t.Context(), &r)
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("it ended with %v, want %q", err, c.err)
			}
			if r.missed != c.missed {
				t.Errorf("the answer was missed: %v, want %v", r.missed, c.missed)
			}
		})
	}
}

// A run in which a process has ended by itself shows nothing.
func TestEndedByItself(t *testing.T) {
	lane.All(t)
	t.Setenv("TMPDIR", t.TempDir()) // the logs stay
	kill := func(pid int) error {
		p, err := os.FindProcess(pid)
		if err != nil {
			return err
		}
		return p.Kill()
	}
	for name, c := range map[string]struct {
		do   func(r *run) error
		want string
	}{
		"the leader": {func(r *run) error { return kill(r.leader.peer.PID()) }, "the process of a has ended by itself"},
		"the server": {func(r *run) error {
			pids, err := r.place.Servers()[0].PIDs()
			if err != nil {
				return err
			}
			return kill(pids[len(pids)-1])
		}, "has ended by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan{n: 1, jobs: 1, session: 2 * time.Second, patience: time.Second, progress: t.Output()}
			if err := p.choose("crash", "^etcd: "+candidate.Ours+"$"); err != nil {
				t.Fatal(err)
			}
			p.rows[0].fault.do = func(_ context.Context, r *run) error { return c.do(r) }
			report, err := p.measure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := report.Cells[0]; len(got.Runs) != 0 || len(got.Errors) != 1 || !strings.Contains(got.Errors[0], c.want) {
				t.Errorf("it shows %+v, want an error with %q", got, c.want)
			}
		})
	}
}

// Where the servers do not start, nothing is left behind.
func TestNoServers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := run{library: candidate.Library{Coordinator: "none"}, session: time.Second}
	if _, err := r.do(t.Context()); err == nil {
		t.Error("a coordinator that does not exist has started")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
