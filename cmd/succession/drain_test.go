//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/recipes/queue"
)

// drain has others lead all that a candidate leads, in each election another that is not to be drained too. What nobody can
// take over is led on, without an interruption, and the exit code says so.
func TestDrain(t *testing.T) {
	url, _ := inMemory(t)
	reader, err := succession.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	// join has a candidate campaign, and returns when it stands in line. Its terms come on the channel.
	join := func(election, id string) (*elect.Election, <-chan *elect.Term) {
		b, err := succession.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		stands, terms := make(chan struct{}), make(chan *elect.Term, 10)
		joined := sync.OnceFunc(func() { close(stands) })
		e := elect.New(b, election, &elect.Options{ID: id, History: 5, Trace: func(ev trace.Event) {
			if ev.Kind == trace.Joined {
				joined()
			}
		}})
		running.Go(func() {
			defer b.Close()
			e.Run(ctx, func(ctx context.Context, term *elect.Term) error {
				terms <- term
				<-ctx.Done()
				return nil
			})
		})
		<-stands
		return e, terms
	}
	join("reports", "web-3a")
	join("reports", "web-3b")
	join("reports", "web-4")
	join("audits", "web-4")
	join("audits", "web-3a")
	alone, terms := join("alone", "web-3a")
	term := <-terms

	code, stdout, stderr := here("--url", url, "drain", "web-3*", "--reason", "kernel update", "--by", "anna", "-o", "json")
	type told struct {
		Name           string
		Resigned, Next *struct{ ID string }
		Error          string
	}
	all := make(map[string]told)
	for line := range strings.Lines(stdout) {
		var d told
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all[d.Name] = d
	}
	if r := all["reports"]; r.Resigned == nil || r.Resigned.ID != "web-3a" || r.Next == nil || r.Next.ID != "web-4" || r.Error != "" {
		t.Errorf("reports: %s", stdout)
	}
	if a := all["alone"]; a.Next != nil || !strings.Contains(a.Error, "web-3a leads on: nobody stands behind it") || alone.Term() != term || term.Check() != nil {
		t.Errorf("alone: %s", stdout)
	}
	if _, ok := all["audits"]; ok || len(all) != 2 {
		t.Errorf("somebody was asked who leads nothing: %s", stdout)
	}
	if code != 1 || !strings.Contains(stderr, "not handed over") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	// The end of a term is written down soon after it.
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		past, err := operate.New(reader, "reports", "").History(ctx)
		if err == nil && len(past) > 0 && past[0].Why == "asked to resign by anna: kernel update" {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the history is %+v, %v", past, err)
		}
	}

	code, stdout, stderr = here("--url", url, "drain", "web-9")
	if code != 0 || !strings.Contains(stdout, "web-9 leads nothing") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := here("--url", url, "drain", ""); code != 125 || !strings.Contains(stderr, "the id is empty") {
		t.Errorf("without an id, exit code %d: %s", code, stderr)
	}

	// An id may have characters that mean something in other patterns, and * stands for all.
	join("odd", "ns/web[1]?")
	join("odd", "ns/web-2")
	join("odd", "ns/web-9") // also stands there while the first joins again
	for _, id := range []string{"ns/web1x", "ns/web[1]", "s/web*"} {
		if code, stdout, stderr := here("--url", url, "drain", id); code != 0 || !strings.Contains(stdout, "leads nothing") {
			t.Errorf("drain %s: exit code %d: %s%s", id, code, stdout, stderr)
		}
	}
	for _, id := range []string{"ns/web[1]?", "*-2"} {
		if code, stdout, stderr := here("--url", url, "drain", id); code != 0 || !strings.Contains(stdout, "odd: ns/web") {
			t.Errorf("drain %s: exit code %d: %s%s", id, code, stdout, stderr)
		}
	}
}

// A meddler is a backend that calls then when a line has been read for the first time.
type meddler struct {
	backend.Backend
	line string
	then func()
}

func (b *meddler) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return meddled{s, b}, err
}

type meddled struct {
	backend.Session
	b *meddler
}

func (s meddled) Line(ctx context.Context, line string) (backend.Line, error) {
	l, err := s.Session.Line(ctx, line)
	if then := s.b.then; line == s.b.line && then != nil {
		s.b.then = nil
		then()
	}
	return l, err
}

// What they come to lead during a drain is handed over too: another election, and the same one if the next leader is one of them. What
// they lead again stays, and is told.
func TestDrainLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: 10 * time.Second})
		reader := c.Client("reader")
		defer reader.Close()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		// joinUntil has a candidate stand in line. When it is asked to resign it first calls last, once.
		joinUntil := func(ctx context.Context, election, id string, last func()) {
			b := c.Client(id + election)
			running.Go(func() {
				defer b.Close()
				elect.New(b, election, &elect.Options{ID: id}).Run(ctx, func(ctx context.Context, _ *elect.Term) error {
					<-ctx.Done()
					if errors.Is(context.Cause(ctx), elect.ErrAsked) && last != nil {
						last()
						last = nil
					}
					return nil
				})
			})
			synctest.Wait()
		}
		join := func(election, id string, last func()) { joinUntil(ctx, election, id, last) }
		ask := func(election, to string) {
			if _, err := operate.New(reader, election, "somebody else").AskToResign(ctx, &operate.ResignOptions{To: to}); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		join("a", "web-3a", func() {
			join("later", "web-3a", func() {
				time.Sleep(10 * time.Second) // it stands in line again
				ask("c", "web-3a")
			})
			join("later", "web-4", nil)
		})
		join("a", "web-4", nil)
		for _, id := range []string{"web-3a", "web-3b", "web-4"} {
			join("b", id, nil)
		}
		// Who was to lead goes when the leader is asked, so another follows who is to be drained.
		heir, heirGoes := context.WithCancel(ctx)
		joinUntil(ctx, "d", "web-3a", func() { heirGoes(); synctest.Wait() })
		join("d", "web-3b", nil)
		joinUntil(heir, "d", "web-4", nil)
		join("d", "web-5", nil)
		all, allGo := context.WithCancel(ctx)
		joinUntil(all, "e", "web-3a", func() { allGo(); synctest.Wait() })
		joinUntil(all, "e", "web-4", nil)
		join("c", "web-3a", nil)
		join("c", "web-4", nil)

		d := &draining{
			g: &connect.Flags{Timeout: 5 * time.Second}, pattern: "web-3*", by: "anna", wait: time.Minute,
			b: &meddler{c.Client("drain"), "b", func() { ask("b", "web-3b") }},
		}
		defer d.b.Close()
		var told []string
		if err := d.all(ctx, func(h handover) error { told = append(told, strings.Split(h.String(), " (")[0]); return nil }); err != nil {
			t.Error(err)
		}
		want := []string{
			"a: web-3a resigned; web-4 leads",
			"b: web-3b resigned; web-4 leads",
			"c: web-3a resigned; web-4 leads",
			"d: web-3a resigned; web-5 leads",
			`e: web-3a resigned from "e", and nobody was seen to lead since`,
			"later: web-3a resigned; web-4 leads",
			"c: web-3a leads again; drain once more",
		}
		if !slices.Equal(told, want) {
			t.Errorf("told is\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
	})
}

// Who waits for an item in an empty queue leads nothing; an election with such a name is handed over once somebody has been at work in it.
func TestDrainLeavesWaitersAlone(t *testing.T) {
	url, _ := inMemory(t)
	b, err := succession.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stands, taken := make(chan struct{}), make(chan error, 1)
	joined := sync.OnceFunc(func() { close(stands) })
	go func() {
		_, err := queue.New(b, "mails", &queue.Options{Options: elect.Options{ID: "web-3", Trace: func(ev trace.Event) {
			if ev.Kind == trace.Joined {
				joined()
			}
		}}}).Take(ctx)
		taken <- err
	}()
	defer func() { cancel(); <-taken }()
	select {
	case <-stands:
	case err := <-taken:
		t.Fatal(err)
	}
	if code, stdout, stderr := here("--url", url, "drain", "web-3"); code != 0 || !strings.Contains(stdout, "web-3 leads nothing") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	term, err := elect.New(b, "my-turn", &elect.Options{ID: "web-3"}).Campaign(ctx)
	if err == nil {
		err = term.Acknowledge(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer term.Resign(context.WithoutCancel(ctx))
	if code, stdout, _ := here("--url", url, "drain", "web-3"); code != 1 || !strings.Contains(stdout, "my-turn: web-3 leads on") {
		t.Errorf("an election: exit code %d: %s", code, stdout)
	}
}

// A leader of another program may have no id. Its key then takes the place of that, wherever people read or say who leads.
func TestLeaderWithoutID(t *testing.T) {
	url, c := inMemory(t)
	b := c.Client("foreign")
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Join(t.Context(), "reports", "", "")
	if err != nil {
		t.Fatal(err)
	}
	key := j.Member.Key
	checkOutput(t, []string{"--url", url, "leader", "reports"}, 0, key+"\n")
	checkOutput(t, []string{"--url", url, "drain", key}, 1, "reports: "+key+" leads on: nobody stands behind it who could\n")
	if c := changeTo(elect.State{Leader: elect.Leader{Candidate: elect.Candidate{Key: key, Token: 7}}}); c.String() != key+" leads, token 7" {
		t.Errorf("watch says %q", c)
	}
	_, _, stderr := here("--url", url, "resign", "reports", "--wait", "1ms")
	if !strings.Contains(stderr, key+" was asked to resign") {
		t.Errorf("resign says %q", stderr)
	}
}
