package main

import (
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// paged is a book of what the page of PostgreSQL needs, and of what it leaves out.
func paged() *book {
	b := &book{Machine: []string{"1 core"}}
	add := func(f figure) {
		f.Coordinator, f.Date, f.Server, f.Times = candidate.Postgres, "2026-01-02", "15", []time.Duration{time.Millisecond}
		b.put(&f)
	}
	for _, l := range candidate.Libraries {
		if l.Coordinator != candidate.Postgres || l.CostsOnly {
			continue
		}
		for _, n := range pageLengths[candidate.Postgres] {
			add(figure{Measure: handover, Library: candidate.Floor, N: n, Processes: shortProcesses})
			if l.Most == 0 || n <= l.Most {
				add(figure{Measure: handover, Library: l.Name, N: n, Processes: shortProcesses})
				add(figure{Measure: handover, Library: l.Name, N: n, Processes: 1})
			}
		}
		add(figure{Measure: failover, Library: l.Name, N: 1, Session: 10 * time.Second})
		f := figure{Measure: rest, Library: l.Name, N: pageWaiters, Session: 10 * time.Second, Requests: 12, Bytes: 7000}
		f.Alone.Requests, f.Alone.Bytes = 5, 4000
		add(f)
		add(figure{Measure: rest, Library: l.Name, N: 1000, Session: 10 * time.Second})
		if l.Most == 0 || shownReplicas <= l.Most {
			add(figure{Measure: server, Library: l.Name, N: shownReplicas, Session: 10 * time.Second, CPU: 0.123, Memory: 5 << 20})
		}
		add(figure{Measure: lock, Library: l.Name, N: 1})
	}
	b.put(&figure{Measure: handover, Coordinator: candidate.Etcd, Library: candidate.Ours, N: 5, Processes: shortProcesses, Times: []time.Duration{1}})
	return b
}

// The page of a coordinator has its handovers, failovers and lines at rest, and what a leader and a waiter cost.
func TestPage(t *testing.T) {
	b := paged()
	if err := b.wholePage(candidate.Postgres); err != nil {
		t.Error(err)
	}
	var out strings.Builder
	b.page(&out, candidate.Postgres)
	for _, want := range []string{
		"2026-01-02, one server, which waits for its disk, candidates in 5 processes, 1 core.\n",
		"| PostgreSQL 15 | 100 | 5 | **succession** | 1.00 |",
		"| PostgreSQL 15 | River's elector | 1 | 10.0 s | 1 ms |",
		"| PostgreSQL 15 | succession | 1 | 10.0 s | 12 | 7.0 kB | 0.50 | 0.70 | 400 | 300 |",
		"| PostgreSQL 15 | succession | 100 | 10.0 s | 12.3 % | 5 MiB |",
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("not once: %s", want)
		}
	}
	for _, no := range []string{"etcd", "| 1000 | 10.0 s |", "| 5 | 1 |", "nobody else wants the lock"} {
		if strings.Contains(out.String(), no) {
			t.Errorf("it shows %s", no)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// What lacks a row, or was measured on a server that did not wait for its disk, is not for showing.
func TestWholePage(t *testing.T) {
	for name, c := range map[string]struct {
		drop func(*figure) bool
		want string
	}{
		"a floor":    {func(f *figure) bool { return f.Library == candidate.Floor && f.N == 100 }, "handover, postgres: floor, 100"},
		"a length":   {func(f *figure) bool { return f.Library == candidate.Ours && f.N == 100 && f.Processes == 5 }, "handover, postgres: succession, 100"},
		"a failover": {func(f *figure) bool { return f.Measure == failover && f.Library == candidate.Ours }, "failover, postgres: succession, 1"},
		"a load":     {func(f *figure) bool { return f.Measure == server && f.Library == "River's elector" }, "server, postgres: River's elector, 100"},
		"a rest":     {func(f *figure) bool { return f.Measure == rest && f.Library == "River's elector" && f.N == 1 }, "rest, postgres: River's elector, 1"},
	} {
		b := paged()
		quick := paged()
		for i := len(b.Figures) - 1; i >= 0; i-- {
			if c.drop(b.Figures[i]) {
				quick.Figures[i].NoDisk = true
				b.Figures = append(b.Figures[:i], b.Figures[i+1:]...)
			}
		}
		for _, b := range []*book{b, quick} {
			if err := b.wholePage(candidate.Postgres); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("without %s: %v, want %s", name, err, c.want)
			}
		}
	}
	if err := paged().wholePage(candidate.ZooKeeper); err == nil || !strings.Contains(err.Error(), "-page") {
		t.Errorf("a coordinator that has no such page: %v", err)
	}
}

// A group that was too large has a row that says so.
func TestGroupThatWasTooLarge(t *testing.T) {
	b := new(book)
	b.put(&figure{Measure: grouping, Coordinator: candidate.Local, Library: candidate.Ours, N: 500, Error: "not all have seen it"})
	var table strings.Builder
	b.groupTable(&table)
	if !strings.HasSuffix(table.String(), "| 500 | – | not all have seen it | – |\n") {
		t.Errorf("the table is %q", table.String())
	}
}

// The page of the recipes needs each lock, queue and group.
func TestWholeRecipes(t *testing.T) {
	all := func() *book {
		b := new(book)
		for _, l := range candidate.Libraries {
			for _, m := range []string{lock, contest} {
				b.put(&figure{Measure: m, Coordinator: l.Coordinator, Library: l.Name})
			}
			for _, n := range shownQueues {
				for _, name := range queuesOf(l.Coordinator) {
					b.put(&figure{Measure: queueing, Coordinator: l.Coordinator, Library: name, N: n})
				}
			}
			for _, n := range shownGroups {
				for _, name := range groupsOf(l.Coordinator) {
					b.put(&figure{Measure: grouping, Coordinator: l.Coordinator, Library: name, N: n})
				}
			}
		}
		return b
	}
	if err := all().wholeRecipes(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		measure, coordinator, library string
		n                             int
	}{
		{lock, candidate.Postgres, "pg_advisory_lock, pgx", 0},
		{contest, candidate.ZooKeeper, "kazoo Election", 0},
		{queueing, candidate.Local, candidate.Ours, 1000},
		{queueing, candidate.ZooKeeper, "kazoo LockingQueue", 200},
		{grouping, candidate.Etcd, candidate.Ours, 500},
		{grouping, candidate.ZooKeeper, curatorGroup, 100},
	} {
		b := all()
		for _, f := range b.Figures {
			if f.Measure == c.measure && f.Coordinator == c.coordinator && f.Library == c.library && f.N == c.n {
				f.Error = "the machine was on fire"
			}
		}
		if err := b.wholeRecipes(); err == nil || !strings.Contains(err.Error(), c.measure) || !strings.Contains(err.Error(), c.coordinator) {
			t.Errorf("without %+v: %v", c, err)
		}
	}
}
