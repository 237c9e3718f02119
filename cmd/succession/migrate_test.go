//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession"
	migratecmd "github.com/succession-dev/succession/cmd/succession/internal/migrate"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/migrate"
)

// A moving is two coordinators of this process, and the command between them.
type moving struct {
	t        *testing.T
	from, to string
}

func newMoving(t *testing.T) *moving {
	from, _ := inMemory(t)
	to, _ := inMemory(t)
	return &moving{t, from, to}
}

// stands has a candidate lead, or wait, until the test ends or it is stopped.
func (m *moving) stands(url, id string) (stop func()) {
	m.t.Helper()
	b, err := succession.Connect(m.t.Context(), url)
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stands, led, done := make(chan struct{}), make(chan struct{}, 100), make(chan struct{})
	waits := make(chan struct{}, 100)
	var joined bool
	e := elect.New(b, "reports", &elect.Options{ID: id, Trace: func(ev trace.Event) {
		switch {
		case ev.Kind == trace.Joined && !joined:
			joined = true
			close(stands)
		case ev.Kind == trace.Waiting:
			waits <- struct{}{}
		}
	}})
	go func() {
		defer close(done)
		defer b.Close()
		e.Run(ctx, func(ctx context.Context, _ *elect.Term) error {
			led <- struct{}{}
			<-ctx.Done()
			return nil
		})
	}()
	<-stands
	select {
	case <-led:
	case <-waits:
	case <-done:
	}
	stop = func() { cancel(); <-done }
	m.t.Cleanup(stop)
	return stop
}

var madeUp = regexp.MustCompile(`(\bmigration (?:m1-)?|"id":"m1-)[a-z0-9]{8}\b`)

// prints runs a subcommand and compares its exit code, what it prints, and what stands
// in its error.
func (m *moving) prints(args string, code int, want, said string) {
	m.t.Helper()
	full := append([]string{"migrate"}, strings.Fields(args)...)
	got, stdout, stderr := here(append(full, "--from", m.from, "--to", m.to)...)
	stdout = m.plain(stdout)
	if got != code || stdout != want || !strings.Contains(m.plain(stderr), said) || said == "" && stderr != "" {
		m.t.Fatalf("migrate %s: exit code %d, want %d; output\n%s\nwant\n%s\nstandard error: %s\nwant: %s", args, got, code, stdout, want, m.plain(stderr), said)
	}
}

func (m *moving) plain(s string) string {
	s = strings.NewReplacer(m.from, "memory:OLD", m.to, "memory:NEW").Replace(s)
	return madeUp.ReplaceAllString(s, "${1}ID")
}

func (m *moving) both() string { return migratecmd.BothURL(m.from, m.to) }

// In virtual time, so that --wait ends when there is nothing left to be done.
func TestMigrate(t *testing.T) { synctest.Test(t, testMigrate) }

func testMigrate(t *testing.T) {
	m := newMoving(t)
	m.prints("status reports", 0, `reports: none
  from  memory:OLD
  to    memory:NEW
next: begin the migration
`, "")
	m.prints("cutover reports --yes", 1, "", "no migration has begun")
	stopOld := m.stands(m.from, "web-1")
	m.prints("begin reports --dry-run", 0, `would put a gate at the head of the line on memory:NEW, behind which everybody waits who is started there
reports: none
  from  memory:OLD
  to    memory:NEW
ON    ID     KEY           TOKEN  MODE
from  web-1  n_0000000000  1      old
next: begin the migration
`, "")
	const begun = `reports: begun, migration ID
  from  memory:OLD
  to    memory:NEW
  both  migrate:?from=memory:OLD&to=memory:NEW
ON    ID     KEY           TOKEN  MODE
from  web-1  n_0000000000  1      old
blocked: the leader, web-1 (n_0000000000), runs with memory:OLD alone, and has no place on memory:NEW: restart it with both coordinators, or ask it to resign
next: restart with both coordinators: web-1 (n_0000000000); then cut over
`
	m.prints("begin reports", 0, begun, "")
	m.prints("begin reports", 0, begun, "")
	m.prints("finish reports", 1, "", "cut over first")
	m.prints("cutover reports", 1, "", "say --yes if you mean it")
	m.prints("cutover reports --yes --wait 5s", 124, "", "the leader, web-1 (n_0000000000), runs with memory:OLD alone")
	m.prints("cutover reports --dry-run", 0, `would wait, as the leader has been asked already: the leader, web-1 (n_0000000000), runs with memory:OLD alone, and has no place on memory:NEW: restart it with both coordinators, or ask it to resign
`+strings.NewReplacer("begun", "asked", "next: restart with both coordinators: web-1 (n_0000000000); then cut over", "next: wait: the leader cuts over as soon as nothing blocks it; or abort").Replace(begun), "")
	m.stands(m.both(), "web-2")
	stopOld()
	m.prints("cutover reports --yes", 0, `reports: moved, migration ID
  from  memory:OLD
  to    memory:NEW
ON  ID     KEY           TOKEN  MODE
to  web-2  n_0000000001  13     both
next: restart with memory:NEW alone, when it suits: web-2 (n_0000000001)
`, "")
	m.prints("abort reports", 1, "", "too late")
	m.prints("finish reports", 0, `reports: moved, migration ID
  from  memory:OLD
  to    memory:NEW
ON  ID     KEY           TOKEN  MODE
to  web-2  n_0000000001  13     both
next: restart with memory:NEW alone, when it suits: web-2 (n_0000000001)
`, "")
}

func TestMigrateAbort(t *testing.T) {
	m := newMoving(t)
	m.prints("begin reports --id m1", 0, `reports: begun, migration m1-ID
  from  memory:OLD
  to    memory:NEW
  both  migrate:?from=memory:OLD&to=memory:NEW
blocked: nobody leads: start a process with both coordinators
next: start a process with both coordinators; then cut over
`, "")
	m.prints("begin reports --id m2", 1, "", "its gate on memory:NEW is of migration m1-ID")
	const aborted = `reports: aborted, migration m1-ID
  from  memory:OLD
  to    memory:NEW
next: restart every process with memory:OLD alone, or begin again
`
	m.prints("abort reports --dry-run", 0, `would forbid the cutover, note on memory:NEW that the election stays on memory:OLD, and take away the gate
reports: begun, migration m1-ID
  from  memory:OLD
  to    memory:NEW
  both  migrate:?from=memory:OLD&to=memory:NEW
blocked: nobody leads: start a process with both coordinators
next: start a process with both coordinators; then cut over
`, "")
	m.prints("abort reports", 0, aborted, "")
	m.prints("abort reports", 0, aborted, "")
	m.prints("cutover reports", 1, "", "begin again")
}

// Records that may go with the election are named, and flags say what becomes of them.
func TestMigrateRecords(t *testing.T) {
	m := newMoving(t)
	for _, name := range []string{"reports-position", "reports.state"} {
		if code, _, stderr := here("set", name, "7", "--url", m.from); code != 0 {
			t.Fatal(stderr)
		}
	}
	const moved = `reports: moved, migration ID
  from  memory:OLD
  to    memory:NEW
next: nothing: nobody who stands in line knows memory:OLD
`
	if code, _, stderr := here("migrate", "begin", "reports", "--from", m.from, "--to", m.to); code != 0 {
		t.Fatal(stderr)
	}
	stop := m.stands(m.both(), "web-2")
	m.prints("cutover reports --yes", 1, "", "whether they go with it: reports-position;")
	m.prints("cutover reports --yes --carry mistyped", 1, "", "there is no record mistyped")
	if code, _, stderr := here("migrate", "cutover", "reports", "--from", m.from, "--to", m.to, "--yes", "--leave-records"); code != 0 {
		t.Fatal(stderr)
	}
	stop()
	m.prints("finish reports", 1, "", "reports-position")
	m.prints("finish reports --leave-records", 0, moved, "")
	m.prints("finish reports --carry reports-position --carry reports.state", 0, moved, "")
	for _, name := range []string{"reports-position", "reports.state"} {
		if code, stdout, stderr := here("get", name, "--url", m.to); code != 0 || strings.TrimSpace(stdout) != "7" {
			t.Errorf("%s is %q on the new coordinator, exit code %d, %s", name, stdout, code, stderr)
		}
	}
}

// A folder and a link to it are one coordinator.
func TestMigrateToALink(t *testing.T) {
	folder, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := here("migrate", "begin", "reports", "--from", "local:"+folder, "--to", "local:"+link)
	if code != 1 || !strings.Contains(stderr, "are one coordinator") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// As JSON the same is printed as an object with fixed keys, of a plan with two more.
func TestMigrateJSON(t *testing.T) {
	m := newMoving(t)
	m.prints("begin reports --id m1 -o json", 0, `{"election":"reports","from":"memory:OLD","to":"memory:NEW","id":"m1-ID","phase":"begun","on_from":[],"on_to":[],"ready":false,`+
		`"blocks":["nobody leads: start a process with both coordinators"],"next":"start a process with both coordinators; then cut over"}`+"\n", "")
	m.stands(m.both(), "web-2")
	m.prints("cutover reports --dry-run -o json", 0, `{"election":"reports","from":"memory:OLD","to":"memory:NEW","id":"m1-ID","phase":"begun",`+
		`"on_from":[{"id":"web-2","key":"n_0000000000","token":12,"mode":"both"}],"on_to":[{"id":"web-2","key":"n_0000000001","token":12,"mode":"both"}],"ready":true,`+
		`"blocks":[],"next":"cut over","changes":true,"does":"ask the leader, web-2 (n_0000000000), to seal the election on memory:OLD for good, and to lead on by memory:NEW alone"}`+"\n", "")
	code, stdout, _ := here("migrate", "status", "reports", "--from", m.from, "--to", m.to, "-o", "json")
	var s migrate.Status
	if err := json.Unmarshal([]byte(stdout), &s); code != 0 || err != nil || s.Phase != migrate.Begun || !s.Ready {
		t.Errorf("exit code %d, %v, %+v", code, err, s)
	}
}

func TestMigrateArguments(t *testing.T) {
	m := newMoving(t)
	m.prints("status", 125, "", "want the NAME of one election")
	m.prints("status a//b", 125, "", "empty segment")
	for _, tt := range []struct{ args, said string }{
		{"migrate", "say which step"},
		{"migrate status reports", "say which coordinators"},
		{"migrate status reports --from local:a", "say which coordinators"},
		{"migrate status reports --from memory:a --to memory:a", "are one coordinator"},
		{"migrate status reports --from memory:a --to migrate:?from=memory:a", "--to is itself a migration"},
		{"migrate status reports --from nowhere:a --to memory:b", "--from: invalid URL"},
		{"migrate status reports --from memory:a --to memory:b --url memory:c", "no --url"},
		{"migrate status reports --from memory:a --to zookeeper://127.0.0.1:1/?connect=100ms", "--to: zookeeper://127.0.0.1:1/?connect=100ms: not reached"},
	} {
		code, _, stderr := here(strings.Fields(tt.args)...)
		if code != ui.ExitFailed || !strings.Contains(stderr, tt.said) {
			t.Errorf("%s: exit code %d, standard error %q; want %q", tt.args, code, stderr, tt.said)
		}
	}
}

// At a terminal it asks, and takes a yes for a yes alone.
func TestMigrateAsks(t *testing.T) {
	from, to := localURL(t), localURL(t)
	flags := []string{"reports", "--from", from, "--to", to}
	if code, _, stderr := here(append([]string{"migrate", "begin"}, flags...)...); code != 0 {
		t.Fatal(stderr)
	}
	start(t, "--url", migratecmd.BothURL(from, to), "run", "--id", "web-1", "reports", "--", "sleep", "1000").event("elected")
	for _, tt := range []struct {
		answer string
		code   int
		last   string
	}{
		{"\n", ui.ExitRefused, "not confirmed"},
		{"no\n", ui.ExitRefused, "not confirmed"},
		{"y\n", 0, "next: restart with"},
		{"", 0, "next: restart with"}, // done already: nothing to ask
	} {
		term := onTerminal(t, append([]string{"migrate", "cutover"}, flags...)...)
		term.press(tt.answer)
		term.wait(tt.last)
		if code := waitCode(t, term.cmd); code != tt.code {
			t.Errorf("answer %q: exit code %d, want %d", tt.answer, code, tt.code)
		}
	}
}
