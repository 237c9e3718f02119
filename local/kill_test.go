//go:build linux

package local_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestKill kills the first of a line of processes again and again: exactly the next
// one leads, with a larger token, and at once. One that is stopped keeps its place.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	var line []*process
	for range 6 {
		p := start(t, "stand", dir)
		p.say(t, "joined")
		line = append(line, p)
	}
	token := line[0].say(t, "leads")[1]

	if err := line[0].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	line[1].silent(t, "while the leader is stopped")
	_, s := open(t, dir)
	if got := values(t, s, "e"); len(got) != len(line) {
		t.Errorf("while the leader is stopped, %d stand in line, want %d", len(got), len(line))
	}

	watch := calm.Start(t)
	var took []time.Duration
	for i, p := range line[:len(line)-1] {
		killed := monotonic()
		p.kill()
		led := line[i+1].say(t, "leads")
		took = append(took, time.Duration(int64(led[0])-killed))
		if led[1] <= token {
			t.Errorf("token %d after %d", led[1], token)
		}
		token = led[1]
		for _, other := range line[i+2:] {
			other.silent(t, "when another was killed")
		}
	}
	slices.Sort(took)
	t.Logf("from kill -9 to the next one's leading: %v", took)
	if median := took[len(took)/2]; median > 100*time.Millisecond && !watch.NotJudged(100*time.Millisecond, "median %v", median) {
		t.Errorf("median %v, want milliseconds", median)
	}
	// A member killed in the middle of the line is nobody's news.
	if got := values(t, s, "e"); len(got) != 1 {
		t.Errorf("%q stand in line, want the last", got)
	}
}

// TestKillAnywhere kills processes at random points of what they do. Whatever the
// point, the files stay readable, nobody alive is lost, nobody dead stays, no two
// lead, and no number is given twice.
func TestKillAnywhere(t *testing.T) {
	const workers, kills = 4, 50
	dir := coordtest.Folder(t)
	_, s := open(t, dir)
	stander := start(t, "stand", dir) // leads for as long as it lives
	first := stander.say(t, "joined")[0]
	stander.say(t, "leads")

	given := &ledger{t: t, given: make(map[uint64]bool)}
	round := func(t *testing.T, check func(*testing.T, []backend.Member)) {
		p := start(t, "churn", dir)
		given.take(p.say(t, "position")[0])
		time.Sleep(rand.N(15 * time.Millisecond)) // anywhere
		p.kill()
		for line := range p.lines {
			word, digits, _ := strings.Cut(line, " ")
			n, err := strconv.ParseUint(digits, 10, 64)
			if word != "position" || err != nil {
				t.Errorf("a process said %q", line)
				continue
			}
			given.take(n)
		}
		p.cmd.Wait()
		before := given.largest()
		l, err := s.Line(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range l.Members {
			if m.Value == strconv.Itoa(p.cmd.Process.Pid) {
				t.Errorf("%+v is still in line, and its process is dead", m)
			}
		}
		check(t, l.Members)
		v, err := s.Put(t.Context(), "mine", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if uint64(v) <= before {
			t.Errorf("version %d after %d was given", v, before)
		}
		given.take(uint64(v))
	}
	rounds := func(name string, check func(*testing.T, []backend.Member)) {
		t.Run(name, func(t *testing.T) {
			for i := range workers {
				t.Run(strconv.Itoa(i), func(t *testing.T) {
					t.Parallel()
					for range kills / 2 {
						round(t, check)
					}
				})
			}
		})
	}
	rounds("behind a leader", func(t *testing.T, line []backend.Member) {
		if len(line) == 0 || line[0].Position != first {
			t.Errorf("the one who stands first was lost: %+v", line)
		}
	})
	stander.kill()
	stander.cmd.Wait()
	rounds("leading in turn", func(*testing.T, []backend.Member) {})

	l, err := s.Line(t.Context(), "e")
	if err != nil || len(l.Members) != 0 {
		t.Errorf("ghosts: %+v, %v", l.Members, err)
	}
	// The next who joins sweeps up what the dead have left.
	m := join(t, s, "e", "")
	fifos, err := filepath.Glob(filepath.Join(dir, "e", "@n_*"))
	if err != nil || len(fifos) != 1 || fifos[0] != fifo(dir, m) {
		t.Errorf("FIFOs %q, %v", fifos, err)
	}
	t.Logf("%d kills, %d numbers given", workers*kills, len(given.given))
}

// A ledger keeps the numbers that were given.
type ledger struct {
	t     *testing.T
	mu    sync.Mutex
	given map[uint64]bool
	top   uint64
}

func (l *ledger) take(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given[n] {
		l.t.Errorf("number %d was given twice", n)
	}
	l.given[n] = true
	l.top = max(l.top, n)
}

func (l *ledger) largest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.top
}

// TestTokensSurvive says that tokens grow over the death of everybody and the
// deletion of the election's folder, between processes.
func TestTokensSurvive(t *testing.T) {
	dir := t.TempDir()
	last := uint64(0)
	for i := range 6 {
		p := start(t, "stand", dir)
		p.say(t, "joined")
		token := p.say(t, "leads")[1]
		if token <= last {
			t.Fatalf("token %d after %d", token, last)
		}
		last = token
		p.kill()
		p.cmd.Wait()
		if i%2 == 1 {
			if err := os.RemoveAll(filepath.Join(dir, "e")); err != nil {
				t.Fatal(err)
			}
		}
	}
}
