package etcd_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// A candidate is one of some kind, ours or foreign.
type candidate struct {
	value string
	// stands joins the line and returns. It calls leads at the moment at which it knows
	// that it leads.
	stands func(leads func())
	// ends ends its leadership. It returns the moment from which on it does not believe
	// in it any more.
	ends func() time.Time
}

// TestTurns puts candidates of all kinds in one line. Leaders leave and are killed in
// turns. One leads at a time, in the order of the line.
func TestTurns(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	name := coordtest.Name(t)
	line := []candidate{
		ours(t, addr, name, "ours, killed", true),
		etcdctl(t, addr, name, "etcdctl, leaves", false),
		goClient(t, addr, name, "Go, killed", true),
		ours(t, addr, name, "ours, leaves", false),
		etcdctl(t, addr, name, "etcdctl, killed", true),
		goClient(t, addr, name, "Go, leaves", false),
		service(t, addr, name, "v3election"),
	}
	watcher := newClient(t, addr)
	s := watcher.session(t)

	type turn struct {
		who int
		at  time.Time
	}
	leads := make(chan turn, 2*len(line))
	for i, c := range line {
		c.stands(func() { leads <- turn{i, time.Now()} })
		inLine(t, s, name, i+1)
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan []string, 1)
	go func() { seen <- observe(ctx, watcher, name) }()

	var ended time.Time
	for i, c := range line {
		var now turn
		select {
		case now = <-leads:
		case <-time.After(time.Minute):
			t.Fatalf("%s does not lead a minute after the one in front of it has gone", c.value)
		}
		if now.who != i {
			t.Fatalf("%s leads; it is the turn of %s", line[now.who].value, c.value)
		}
		if now.at.Before(ended) {
			t.Errorf("%s leads %v before %s has ended", c.value, ended.Sub(now.at), line[i-1].value)
		}
		if m := inLine(t, s, name, len(line)-i); m[0].Value != c.value {
			t.Errorf("%s leads, and %s is first in line", c.value, m[0].Value)
		}
		select {
		case next := <-leads:
			t.Fatalf("%s leads too", line[next.who].value)
		case <-time.After(50 * time.Millisecond):
		}
		ended = c.ends()
	}
	inLine(t, s, name, 0)
	cancel()
	want := 0
	for _, v := range <-seen { // it may skip some, and sees nothing out of order
		i := slices.IndexFunc(line[want:], func(c candidate) bool { return c.value == v })
		if i < 0 {
			t.Fatalf("an observer has seen %q out of order", v)
		}
		want += i + 1
	}
	if want == 0 {
		t.Error("an observer has seen nobody")
	}
}

// observe returns the values of the leaders that it has seen when ctx ends.
func observe(ctx context.Context, c *client, name string) (values []string) {
	for s, err := range elect.New(c, name, nil).Observe(ctx) {
		if err == nil && !s.Vacant() {
			values = append(values, s.Leader.ID)
		}
	}
	return values
}

func ours(t *testing.T, addr, name, value string, killed bool) candidate {
	c := newClient(t, addr)
	if killed {
		c = newClientOf(t, addr, 2*ttl)
	}
	won := make(chan *elect.Term, 1)
	return candidate{value, func(leads func()) {
		go func() {
			term, err := elect.New(c, name, &elect.Options{ID: value}).Campaign(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			leads()
			won <- term
		}()
	}, func() time.Time {
		term := <-won
		if !killed {
			now := time.Now()
			if err := term.Resign(t.Context()); err != nil {
				t.Error(err)
			}
			return now
		}
		c.proxy.Cut()
		<-term.Context().Done()
		return term.Deadline()
	}}
}

func goClient(t *testing.T, addr, name, value string, killed bool) candidate {
	s, err := concurrency.NewSession(admin(t, addr), concurrency.WithTTL(30))
	if err != nil {
		t.Fatal(err)
	}
	e := concurrency.NewElection(s, name)
	return candidate{value, func(leads func()) {
		go func() {
			if err := e.Campaign(t.Context(), value); err != nil {
				t.Error(err)
				return
			}
			leads()
		}()
	}, func() time.Time {
		now, end := time.Now(), e.Resign
		if killed {
			end = func(context.Context) error { return s.Close() } // as etcd ends the lease of who is silent
		}
		if err := end(t.Context()); err != nil {
			t.Error(err)
		}
		return now
	}}
}

func etcdctl(t *testing.T, addr, name, value string, killed bool) candidate {
	binary, err := coordtest.ServerBinary(t.Context(), "etcdctl")
	if err != nil {
		t.Fatal(err)
	}
	operator := admin(t, addr)
	cmd := exec.Command(binary, "--endpoints="+addr, "elect", name, value)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var key string
	read := make(chan struct{})
	return candidate{value, func(leads func()) {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill() // does nothing where it has ended as it should
			<-read
			cmd.Wait()
		})
		go func() {
			defer close(read)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), name) {
					key = lines.Text()
				} else if lines.Text() == value {
					leads()
				}
			}
		}()
	}, func() time.Time {
		now := time.Now()
		if !killed {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
			return now
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		<-read
		// Its lease lasts for a minute, which nobody can change. This is what etcd would
		// do then:
		kv, err := operator.Get(t.Context(), key)
		if err == nil {
			_, err = operator.Revoke(t.Context(), clientv3.LeaseID(kv.Kvs[0].Lease))
		}
		if err != nil {
			t.Error(err)
		}
		return now
	}}
}

// service is a candidate that uses etcd's own election service, over HTTP.
func service(t *testing.T, addr, name, value string) candidate {
	operator := admin(t, addr)
	lease, err := operator.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := operator.Revoke(context.Background(), lease.ID); err != nil {
			t.Error(err)
		}
	})
	place := make(chan json.RawMessage, 1)
	return candidate{value, func(leads func()) {
		go func() {
			var answer struct{ Leader json.RawMessage }
			if err := post(t.Context(), addr, "campaign", map[string]any{
				"name": []byte(name), "value": []byte(value), "lease": int64(lease.ID),
			}, &answer); err != nil {
				t.Error(err)
				return
			}
			leads()
			place <- answer.Leader
		}()
	}, func() time.Time {
		now := time.Now()
		if err := post(t.Context(), addr, "resign", map[string]any{"leader": <-place}, new(struct{})); err != nil {
			t.Error(err)
		}
		return now
	}}
}

// post calls a method of etcd's election service through its gateway.
func post(ctx context.Context, addr, method string, args, answer any) error {
	body, err := json.Marshal(args)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v3/election/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", method, resp.Status, body)
	}
	return json.Unmarshal(body, answer)
}
