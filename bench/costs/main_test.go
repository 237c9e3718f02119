package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
	"github.com/succession-dev/succession/internal/rig/lane"
)

func TestMain(m *testing.M) {
	if candidate.Is(os.Args) {
		os.Exit(candidate.Main(os.Args, nil))
	}
	os.Exit(m.Run())
}

func TestQuantile(t *testing.T) {
	var f figure
	if got := f.quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %d, want 0", got)
	}
	for i := range 100 {
		f.Times = append(f.Times, time.Duration(100-i))
	}
	for q, want := range map[float64]time.Duration{0.01: 1, 0.5: 50, 0.9: 90, 0.99: 99, 1: 100} {
		if got := f.quantile(q); got != want {
			t.Errorf("quantile %v of 1 to 100 is %d, want %d", q, got, want)
		}
	}
	f.Times = f.Times[:1]
	if got := f.quantile(0.5); got != 100 {
		t.Errorf("the median of one time is %d, want that time", got)
	}
}

// Ratios are to the floor and from ours to each peer, of the same line.
func TestTable(t *testing.T) {
	b := new(book)
	add := func(library string, n int, times ...time.Duration) {
		b.put(&figure{Measure: handover, Coordinator: candidate.Etcd, Server: "3", Library: library, N: n, Processes: 1, Times: times})
	}
	const ms = time.Millisecond
	add("concurrency.Election", 5, 4*ms, 3*ms)
	add(candidate.Floor, 5, 1*ms, 2*ms)
	add(candidate.Ours, 5, 9*ms, 9*ms)
	add(candidate.Ours, 5, 2*ms, 3*ms) // measured again
	add(candidate.Ours, 100, 5*ms)     // and nothing beside it
	var out strings.Builder
	b.handovers(&out)
	_, rows, _ := strings.Cut(out.String(), "|---|\n")
	want := `| etcd 3 | 5 | 1 | floor | 1.00 | 2.00 | 2.00 |  |  |  |  |
| etcd 3 | 5 | 1 | **succession** | 2.00 | 3.00 | 3.00 | 2.00 | 1.50 |  |  |
| etcd 3 | 5 | 1 | concurrency.Election | 3.00 | 4.00 | 4.00 | 3.00 | 2.00 | 0.67 | 0.75 |
| etcd 3 | 100 | 1 | **succession** | 5.00 | 5.00 | 5.00 |  |  |  |  |
`
	if rows != want {
		t.Errorf("the rows are\n%swant\n%s", rows, want)
	}
}

// Every library hands over, each on a real server, and the figures are kept and drawn. Kubernetes
// has a test of its own.
func TestHandovers(t *testing.T) {
	lane.All(t)
	t.Parallel()
	dir := t.TempDir()
	kept := filepath.Join(dir, "costs.json")
	out := run(t, "-measure", handover, "-library", "^(etcd|consul|zookeeper|postgres|local):", "-n", "3", "-processes", "2", "-times", "2", "-json", kept)
	for _, l := range slices.Concat(candidate.Libraries, candidate.Floors) {
		if l.Coordinator == candidate.Kubernetes || l.FaultsOnly {
			continue
		}
		row := regexp.MustCompile(`\| ` + candidate.Titles[l.Coordinator] + `[ .0-9]* \| 3 \| 2 \| \**` + regexp.QuoteMeta(l.Name) + `[ .0-9]*\** \| \d+\.\d\d `)
		if found := row.MatchString(out); found != (l.Most != 1) {
			t.Errorf("a row of %s: %v, in\n%s", l.ID(), found, out)
		}
	}
	if again := run(t, "-from", kept, "-svg", dir); again != out {
		t.Errorf("what was kept shows as\n%s\nand not as\n%s", again, out)
	}
	for _, name := range []string{"handover.svg", "lengths.svg"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		d := xml.NewDecoder(f)
		for err == nil {
			_, err = d.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What else is measured is measured of this project and of a peer.
func TestOthers(t *testing.T) {
	lane.All(t)
	t.Parallel()
	for _, c := range []struct {
		measure string
		rows    []string // coordinator and library
	}{
		{failover, []string{"etcd: succession", "consul: succession", "zookeeper: succession", "zookeeper: Curator LeaderLatch", "postgres: succession", "postgres: pg_advisory_lock, pgx", "local: succession"}},
		{rest, []string{"etcd: succession", "consul: succession", "zookeeper: succession", "postgres: succession", "postgres: River's elector", "local: succession"}},
		{server, []string{"etcd: succession", "consul: api.Lock", "zookeeper: succession", "postgres: pg_advisory_lock, pgx"}},
		{many, []string{"etcd: succession"}},
		{lock, []string{"etcd: succession, Mutex", "etcd: concurrency.Mutex", "zookeeper: kazoo Election", "postgres: pg_advisory_lock, pgx", "local: succession"}},
		{contest, []string{"etcd: succession, Mutex", "consul: api.Lock", "zookeeper: kazoo Election", "postgres: succession, Mutex", "local: succession"}},
		{queueing, []string{"etcd: succession", "etcd: recipes.Queue"}},
		{queueing, []string{"zookeeper: succession", "zookeeper: Curator DistributedQueue", "zookeeper: kazoo LockingQueue"}},
		{grouping, []string{"etcd: succession", "postgres: succession", "zookeeper: succession", "zookeeper: Curator GroupMember"}},
	} {
		t.Run(c.measure+", "+c.rows[0], func(t *testing.T) {
			t.Parallel()
			out := run(t, "-measure", c.measure, "-library", "^("+strings.Join(c.rows, "|")+")$", "-session", "2s", "-runs", "1", "-waiters", "2", "-replicas", "2", "-elections", "3", "-items", "8", "-members", "3", "-joins", "1")
			for _, want := range c.rows {
				coordinator, library, _ := strings.Cut(want, ": ")
				row := regexp.MustCompile(`\| ` + candidate.Titles[coordinator] + `[ .0-9]* \| \**` + regexp.QuoteMeta(library) + `[ .0-9]*\**(, which [a-z ]*)? \| [\d–]`)
				if rows := row.FindAllString(out, -1); len(rows) != 1 {
					t.Errorf("%d rows of %s, want 1, in\n%s", len(rows), want, out)
				}
			}
		})
	}
}

// Everything is measured on Kubernetes, but for the start of client-go, and handovers beside the floor of Leases.
func TestKubernetes(t *testing.T) {
	lane.All(t)
	out := run(t, "-library", "kubernetes", "-n", "3", "-processes", "2", "-times", "2", "-session", "3s", "-runs", "1", "-waiters", "2", "-replicas", "2", "-elections", "3")
	for _, row := range []string{
		`\| Kubernetes [.0-9]+ \| 3 \| 2 \| floor \| \d`,
		`\| Kubernetes [.0-9]+ \| 3 \| 2 \| client-go leaderelection \(ReleaseOnCancel\) [.0-9]+ \| \d`,
		`\| Kubernetes [.0-9]+ \| 3 \| 2 \| \*\*succession\*\* \| \d`,
		`\| Kubernetes [.0-9]+ \| 3 \| 2 \| succession \(as=client-go\) \| \d`,
		`\| Kubernetes [.0-9]+ \| client-go leaderelection [.0-9]+ \| 1 \| 3\.0 s \| \d`,                                       // failover
		`\| Kubernetes [.0-9]+ \| client-go leaderelection \(ReleaseOnCancel\) [.0-9]+ \| 2 \| 3\.0 s \| [1-9]\d* \|`,          // rest
		`\| Kubernetes [.0-9]+ \| client-go leaderelection \(ReleaseOnCancel\) [.0-9]+ \| 3 \| \d.* \| \d.* \| \d`,             // many
		`\| Kubernetes [.0-9]+ \| client-go leaderelection \(ReleaseOnCancel\) [.0-9]+ \| 2 \| 3\.0 s \| \d+\.\d % \| \d+ MiB`, // server
	} {
		if found := regexp.MustCompile(row).FindAllString(out, -1); len(found) != 1 {
			t.Errorf("%d rows as %s, want 1, in\n%s", len(found), row, out)
		}
	}
	if _, start, _ := strings.Cut(out, "The start of"); strings.Contains(strings.SplitN(start, "\n\nFrom the crash", 2)[0], "client-go leaderelection") {
		t.Errorf("there is a figure for the start of client-go, though nobody can tell who waits, in\n%s", out)
	}
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if err := command(t.Context(), append(args, "-disk=false"), &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "Not measured") {
		t.Error(out.String())
	}
	return out.String()
}
