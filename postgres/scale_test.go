//go:build linux

package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/postgres"
)

// BenchmarkTenThousand measures what the server takes for a heartbeat, and for a look of one who is far from the head, where 10,000
// sessions stand in one line. A hundred connections send them, each for a hundred sessions. It also says how many of the
// heartbeats changed no index (HOT), and how large the table of sessions is after them; and the same of heartbeats while a transaction that
// reads stays open.
//
//	go test -run '^$' -bench TenThousand -benchtime 5x .
func BenchmarkTenThousand(b *testing.B) {
	const connections, each = 100, 100
	addr := coordtest.NewPostgres(b, nil).Addrs()[0]
	if err := postgres.EnsureSchema(b.Context(), configOf(b, addr), ""); err != nil {
		b.Fatal(err)
	}
	run(b, addr, fmt.Sprintf(`INSERT INTO succession.session SELECT gen_random_uuid(), 10000, succession.era(), 1 FROM generate_series(1, %d);
		INSERT INTO succession.member SELECT 'e', row_number() OVER (), id, 1, 'x', false FROM succession.session; ANALYZE`, connections*each))
	type session struct {
		id       string
		position int64
	}
	var sessions []session
	rows, err := connect(b, addr).Query(b.Context(), "SELECT session::text, pos FROM succession.member ORDER BY pos")
	if err != nil {
		b.Fatal(err)
	}
	for rows.Next() {
		var s session
		if err := rows.Scan(&s.id, &s.position); err != nil {
			b.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	var clients []*pgx.Conn
	for range connections {
		clients = append(clients, connect(b, addr))
	}
	beat := func(c *pgx.Conn, s session) error {
		_, err := c.Exec(b.Context(), "SELECT * FROM succession.beat($1, 16)", s.id)
		return err
	}
	look := func(c *pgx.Conn, s session) error {
		_, err := c.Exec(b.Context(), "SELECT * FROM succession.ahead($1, 'e', $2, false)", s.id, s.position)
		return err
	}
	// updates returns how many rows of the table of sessions were changed, how many of them HOT, and the size of the table in MB.
	updates := func() (all, hot, size float64) {
		row := connect(b, addr).QueryRow(b.Context(), `SELECT n_tup_upd, n_tup_hot_upd, pg_relation_size(relid) / 1e6
			FROM pg_stat_user_tables WHERE relid = 'succession.session'::regclass`)
		if err := row.Scan(&all, &hot, &size); err != nil {
			b.Fatal(err)
		}
		return all, hot, size
	}
	for _, what := range []struct {
		name     string
		send     func(*pgx.Conn, session) error
		snapshot bool
	}{{"heartbeat", beat, false}, {"look", look, false}, {"heartbeat-snapshot", beat, true}} {
		b.Run(what.name, func(b *testing.B) {
			if what.snapshot {
				reader := connect(b, addr)
				if _, err := reader.Exec(b.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM succession.session"); err != nil {
					b.Fatal(err)
				}
			}
			all := func(sessions func(i int) []session) {
				var sending sync.WaitGroup
				for i, c := range clients {
					sending.Go(func() {
						for _, s := range sessions(i) {
							if err := what.send(c, s); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				sending.Wait()
			}
			all(func(i int) []session { return sessions[i*each : i*each+10] }) // each connection plans the functions
			allBefore, hotBefore, _ := updates()
			before := used(b, addr)
			n, begun := 0, time.Now()
			for b.Loop() {
				all(func(i int) []session { return sessions[i*each : (i+1)*each] })
				n += connections * each
			}
			b.ReportMetric(float64((used(b, addr)-before).Microseconds())/float64(n), "server-µs")
			b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "per-s")
			b.ReportMetric(0, "ns/op")
			if strings.HasPrefix(what.name, "heartbeat") {
				all, hot, size := updates()
				b.ReportMetric(100*(hot-hotBefore)/(all-allBefore), "hot-%")
				b.ReportMetric(size, "MB")
			}
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
