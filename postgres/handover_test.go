//go:build linux

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

// BenchmarkHandover measures the time from the leader's resigning until the next in line knows that it is first, each candidate with a
// connection of its own, all in this process; and beside it the least that any election can do there, and an advisory lock. Before it begins, and
// between two handovers, the candidates have some time to themselves.
//
// rest-% is how much of a core the server takes while nothing happens, and server-ms what a handover takes more, with the join of the one that has resigned.
//
//	go test -run '^$' -bench Handover -benchtime 60x .
func BenchmarkHandover(b *testing.B) {
	for _, n := range []int{2, 5, 100, 1000} {
		for name, f := range map[string]func(*testing.B, string, int) func() time.Duration{"line": lineHandover, "floor": floorHandover, "advisory": advisoryHandover} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				addr := coordtest.NewPostgres(b, &coordtest.PostgresOptions{Config: []string{"max_connections=1200"}}).Addrs()[0]
				handover := f(b, addr, n)
				time.Sleep(12 * time.Second) // until those who have joined have settled
				begun, before := time.Now(), used(b, addr)
				time.Sleep(8 * time.Second)
				now, after := time.Now(), used(b, addr)
				rest := float64(after-before) / float64(now.Sub(begun))
				var all []time.Duration
				for b.Loop() {
					all = append(all, handover())
				}
				server := float64(used(b, addr)-after) - rest*float64(time.Since(now))
				slices.Sort(all)
				b.ReportMetric(server/float64(len(all))/1e6, "server-ms")
				b.ReportMetric(rest*100, "rest-%")
				b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
				b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// pace is the time between two handovers.
const pace = 200 * time.Millisecond

// used returns the processor time that the server has had, in all its processes, until now.
func used(b *testing.B, addr string) (all time.Duration) {
	server := run(b, addr, "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)")
	children, err := os.ReadFile("/proc/" + server + "/task/" + server + "/children")
	if err != nil {
		b.Fatal(err)
	}
	ticks := func(pid string, fields int) (n int) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(err, fs.ErrNotExist) {
			return 0
		}
		if err != nil {
			b.Fatal(err)
		}
		// In user mode and in the kernel, and then those of children that have ended; see proc(5).
		for _, f := range strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[11 : 11+fields] {
			t, err := strconv.Atoi(f)
			if err != nil {
				b.Fatal(err)
			}
			n += t
		}
		return n
	}
	n := ticks(server, 4)
	for pid := range strings.FieldsSeq(string(children)) {
		n += ticks(pid, 2)
	}
	return time.Duration(n) * 10 * time.Millisecond // USER_HZ
}

func lineHandover(b *testing.B, addr string, n int) func() time.Duration {
	type candidate struct {
		s backend.Session
		m backend.Member
	}
	var line []candidate
	for range n {
		c, err := postgres.New(configOf(b, addr), nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		s, err := c.Session(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		line = append(line, candidate{s, join(b, s, "e", "x")})
	}
	told := make(chan time.Time)
	wait := func(c candidate) {
		p, err := c.s.Ahead(b.Context(), c.m)
		for err == nil && !p.First {
			err = c.s.WatchPlace(b.Context(), c.m, &p)
		}
		if err == nil {
			told <- time.Now()
		}
	}
	for _, c := range line[1:] {
		go wait(c)
	}
	return func() time.Duration {
		time.Sleep(pace)
		first := line[0]
		begun := time.Now()
		if err := first.s.Leave(b.Context(), first.m); err != nil {
			b.Fatal(err)
		}
		took := (<-told).Sub(begun)
		first.m = join(b, first.s, "e", "x")
		line = append(line[1:], first)
		go wait(first)
		return took
	}
}

// floorHandover deletes a row and notifies; who listens reads once.
func floorHandover(b *testing.B, addr string, n int) func() time.Duration {
	db := connect(b, addr)
	exec := func(c *pgx.Conn, sql string) {
		if _, err := c.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	exec(db, "CREATE TABLE floor (n int PRIMARY KEY); INSERT INTO floor SELECT generate_series(1, 100000)")
	var waiters []*pgx.Conn
	for i := range n - 1 {
		c := connect(b, addr)
		exec(c, fmt.Sprintf("LISTEN floor_%d", i))
		waiters = append(waiters, c)
	}
	row := 0
	return func() time.Duration {
		row++
		i := row % len(waiters)
		told := make(chan time.Time, 1)
		go func() {
			var left int
			if _, err := waiters[i].WaitForNotification(b.Context()); err == nil && waiters[i].QueryRow(b.Context(), "SELECT count(*) FROM floor WHERE n = $1", row).Scan(&left) == nil && left == 0 {
				told <- time.Now()
			}
		}()
		time.Sleep(pace)
		begun := time.Now()
		exec(db, fmt.Sprintf("WITH gone AS (DELETE FROM floor WHERE n = %d) SELECT pg_notify('floor_%d', '')", row, i))
		return (<-told).Sub(begun)
	}
}

// advisoryHandover releases a session's advisory lock, for which all others wait.
func advisoryHandover(b *testing.B, addr string, n int) func() time.Duration {
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	type won struct {
		c  *pgx.Conn
		at time.Time
	}
	told := make(chan won)
	wait := func(c *pgx.Conn) {
		if _, err := c.Exec(ctx, "SELECT pg_advisory_lock(1)"); err == nil {
			select {
			case told <- won{c, time.Now()}:
			case <-ctx.Done():
			}
		}
	}
	for range n {
		c := connect(b, addr)
		waiting.Go(func() { wait(c) })
	}
	b.Cleanup(func() { cancel(); waiting.Wait() }) // before the connections are closed
	now := <-told
	return func() time.Duration {
		time.Sleep(pace)
		begun, c := time.Now(), now.c
		if _, err := c.Exec(ctx, "SELECT pg_advisory_unlock(1)"); err != nil {
			b.Fatal(err)
		}
		now = <-told
		waiting.Go(func() { wait(c) })
		return now.at.Sub(begun)
	}
}
