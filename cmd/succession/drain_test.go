//go:build linux

package main

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/elect/trace"
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
