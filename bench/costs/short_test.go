package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// all is a book of what the short table needs, and of what it leaves out.
func all() *book {
	b := &book{Machine: []string{"1 core"}}
	add := func(f figure, times ...time.Duration) {
		f.Measure, f.Date, f.Server, f.Times = handover, "2026-01-02", "3.4", times
		b.put(&f)
	}
	const ms = time.Millisecond
	for _, l := range candidate.Libraries {
		add(figure{Coordinator: l.Coordinator, Library: candidate.Floor, N: shortN, Processes: shortProcesses}, ms, 2*ms)
		if l.Most == 1 {
			continue
		}
		base := 4 * ms
		if l.Name == candidate.Ours {
			base = 2 * ms
		}
		add(figure{Coordinator: l.Coordinator, Library: l.Name, Version: "1.2", N: shortN, Processes: shortProcesses}, base, 2*base)
		add(figure{Coordinator: l.Coordinator, Library: l.Name, N: shortN, Processes: 1}, 77*ms, 77*ms)
		add(figure{Coordinator: l.Coordinator, Library: l.Name, N: 100, Processes: shortProcesses}, 77*ms, 77*ms)
	}
	return b
}

// The short table has one line of each election, with ratios, versions and date.
func TestShort(t *testing.T) {
	var out strings.Builder
	all().short(&out)
	for _, want := range []string{
		"2026-01-02, 2 handovers for each row, 5 candidates in as many processes, one server, which waits for its disk, 1 core.",
		"| *the floor of etcd 3.4* | 1.00 | 2.00 | – | – | – | – |\n",
		"| **succession 1.2**, on etcd 3.4 | 2.00 | 4.00 | 2.00 | 2.00 | – | – |\n",
		"| concurrency.Election 1.2, on etcd 3.4 | 4.00 | 8.00 | 4.00 | 4.00 | 0.50 | 0.50 |\n",
		"| client-go leaderelection (ReleaseOnCancel) 1.2, on Kubernetes 3.4 | 4.00 | 8.00 | 4.00 | 4.00 | 0.50 | 0.50 |\n",
		"| pg_advisory_lock, pgx 1.2, on PostgreSQL 3.4 | 4.00 | 8.00 | 4.00 | 4.00 | 0.50 | 0.50 |\n",
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("not once: %s", want)
		}
	}
	for _, no := range []string{"77.00", "Mutex", "on disconnect", "no timeout", "pinged"} {
		if strings.Contains(out.String(), no) {
			t.Errorf("it shows %s", no)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// A whole table is written into a text, which keeps the rest; otherwise the text stays as it is.
func TestInto(t *testing.T) {
	const text = "before\n<!-- costs -->\nold\n<!-- /costs -->\nafter\n"
	var table strings.Builder
	all().short(&table)
	without := func(drop func(*figure) bool) *book {
		b := all()
		for i := len(b.Figures) - 1; i >= 0; i-- {
			if drop(b.Figures[i]) {
				b.Figures = append(b.Figures[:i], b.Figures[i+1:]...)
			}
		}
		return b
	}
	kubernetes := without(func(f *figure) bool { return f.Coordinator == candidate.Kubernetes })
	peer := without(func(f *figure) bool { return f.Library == "api.Lock" })
	least := without(func(f *figure) bool { return f.Coordinator == candidate.Consul && f.Library == candidate.Floor })
	fewer, quick := all(), all()
	fewer.Figures[1].Times = fewer.Figures[1].Times[:1]
	quick.Figures[1].NoDisk = true
	var tableWithout strings.Builder
	kubernetes.short(&tableWithout)
	for _, c := range []struct {
		name, text string
		b          *book
		want, err  string
	}{
		{"whole", text, all(), "before\n<!-- costs -->\n" + table.String() + "<!-- /costs -->\nafter\n", ""},
		{"without Kubernetes", text, kubernetes, "before\n<!-- costs -->\n" + tableWithout.String() + "<!-- /costs -->\nafter\n", ""},
		{"without a peer", text, peer, text, "consul: api.Lock: not measured"},
		{"without a floor", text, least, text, "consul: succession: not measured beside its floor"},
		{"nothing", text, new(book), text, "no handovers of 5 candidates in 5 processes"},
		{"fewer of one", text, fewer, text, "handovers, where others have"},
		{"without the disk", text, quick, text, "-disk=false"},
		{"no section", "text\n", all(), "text\n", "exactly one section between the lines <!-- costs --> and"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			kept, file := filepath.Join(dir, "costs.json"), filepath.Join(dir, "README.md")
			if err := errors.Join(c.b.save(kept), os.WriteFile(file, []byte(c.text), 0o600)); err != nil {
				t.Fatal(err)
			}
			err := command(t.Context(), []string{"-from", kept, "-short", "-into", file}, t.Output(), t.Output())
			if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("it ended with %v, want %q", err, c.err)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("the file is\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
