//go:build linux

package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

// BenchmarkTenThousand measures what 10,000 sessions in one line cost the server while they wait, in as many session times as
// it has rounds. A hundred backends have a hundred of them each, as a hundred processes would. It says how many requests they
// send, what each takes of a processor of the server, how many heartbeats changed no index (HOT), and how large the table of
// sessions is in the end: by itself, and while a transaction that reads stays open all the time.
//
//	go test -run '^$' -bench TenThousand -benchtime 2x .
func BenchmarkTenThousand(b *testing.B) {
	const processes, each, ttl = 100, 100, time.Minute
	addr := coordtest.NewPostgres(b, nil).Addrs()[0]
	ctx, cancel := context.WithCancel(b.Context())
	var waiting, starting sync.WaitGroup
	b.Cleanup(waiting.Wait)
	b.Cleanup(cancel)
	var clients []*postgres.Backend
	for range processes {
		c := backendOf(b, configOf(b, addr), postgres.Options{TTL: ttl})
		clients = append(clients, c)
		starting.Go(func() {
			for range each {
				s, err := c.Session(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				j, err := s.Join(ctx, "e", "x", "")
				if err != nil {
					b.Error(err)
					return
				}
				waiting.Go(func() {
					p, err := s.Ahead(ctx, j.Member)
					for err == nil && !p.First {
						err = s.WatchPlace(ctx, j.Member, &p)
					}
					if ctx.Err() == nil && err != nil {
						b.Error(err)
					}
				})
			}
		})
	}
	starting.Wait()
	if b.Failed() {
		return
	}
	requests := func() (n int64) {
		for _, c := range clients {
			n += postgres.Requests(c)
		}
		return n
	}
	for _, snapshot := range []bool{false, true} {
		b.Run(fmt.Sprintf("snapshot=%v", snapshot), func(b *testing.B) {
			stats, reader := connect(b, addr), connect(b, addr)
			var updated, hot float64
			var size int64
			read := func() {
				if _, err := stats.Exec(b.Context(), "SELECT pg_stat_clear_snapshot()"); err != nil {
					b.Fatal(err)
				}
				row := stats.QueryRow(b.Context(), `SELECT n_tup_upd, n_tup_hot_upd, pg_relation_size(relid)
					FROM pg_stat_user_tables WHERE relid = 'succession.session'::regclass`)
				if err := row.Scan(&updated, &hot, &size); err != nil {
					b.Fatal(err)
				}
			}
			time.Sleep(ttl) // they have just come, or the last transaction has just ended
			if snapshot {
				if _, err := reader.Exec(b.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM succession.session"); err != nil {
					b.Fatal(err)
				}
			}
			read()
			updatedBefore, hotBefore := updated, hot
			before, sent, begun := used(b, addr), requests(), time.Now()
			for b.Loop() {
				time.Sleep(ttl)
			}
			took, n := used(b, addr)-before, requests()-sent
			elapsed := time.Since(begun)
			read()
			b.ReportMetric(float64(n)/elapsed.Seconds(), "requests/s")
			b.ReportMetric(float64(took.Microseconds())/float64(n), "server-µs/request")
			b.ReportMetric(100*took.Seconds()/elapsed.Seconds(), "core-%")
			b.ReportMetric(100*(hot-hotBefore)/(updated-updatedBefore), "hot-%")
			b.ReportMetric(float64(size)/1e6, "MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkCrash measures the time from when the leader is cut off until the next in line knows that it is first, as a part of the session time.
// Each candidate has a connection of its own.
//
//	go test -run '^$' -bench Crash -benchtime 5x .
func BenchmarkCrash(b *testing.B) {
	for _, ttl := range []time.Duration{2 * time.Second, 10 * time.Second} {
		for _, n := range []int{5, 100} {
			b.Run(fmt.Sprintf("ttl=%v/n=%d", ttl, n), func(b *testing.B) {
				addr := coordtest.NewPostgres(b, nil).Addrs()[0]
				o := postgres.Options{TTL: ttl}
				type candidate struct {
					c *client
					s backend.Session
					m backend.Member
				}
				stand := func() candidate {
					c := newClient(b, addr, o)
					s := c.live(b)
					return candidate{c, s, join(b, s, "e", "x")}
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
				line := []candidate{stand()}
				for range n - 1 {
					c := stand()
					line = append(line, c)
					go wait(c)
				}
				var all []float64
				for b.Loop() {
					time.Sleep(ttl + rand.N(ttl/4)) // somewhere between two heartbeats
					begun := time.Now()
					line[0].c.proxies[0].Cut()
					all = append(all, float64((<-told).Sub(begun))/float64(ttl))
					c := stand()
					line = append(line[1:], c)
					go wait(c)
				}
				slices.Sort(all)
				b.ReportMetric(all[len(all)/2], "p50-ttl")
				b.ReportMetric(all[len(all)-1], "max-ttl")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
