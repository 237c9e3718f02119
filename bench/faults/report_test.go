package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// full is a report of everything, with a vacancy of its own for each row, in which only others
// than this project have overlaps where the promise holds, and one run failed.
func full() (r *report, broken *cell) {
	r = &report{Session: "6 s", N: 2, Sittings: []sitting{
		{Date: "2026-01-02", Commit: "abc", Jobs: 5, Took: "20m0s", Machine: []string{"1 core"}, Load: load{0.25, 1.2, 1.5}},
		{Date: "2026-01-03", Commit: "def", Jobs: 4, Took: "1m1s", Machine: []string{"1 core"}, Load: load{1, 2.1, 3}},
	}}
	for _, f := range faults {
		for _, l := range libraries {
			if !f.possible(l) {
				continue
			}
			c := &cell{Fault: f.name, Coordinator: l.Coordinator, Library: l.Name, Version: "1.2", Server: "3.4"}
			o := outcome{Vacancy: time.Duration(11+len(r.Cells)) * s, Old: oldStopped, Late: -s}
			if !covered(f) || f.name == "cut" && l.Name != "succession" {
				o.Overlap, o.Late = 2*s, 2*s
			}
			c.Runs = []outcome{o, {Vacancy: o.Vacancy, Old: oldStopped, Late: -s}}
			r.Cells = append(r.Cells, c)
		}
	}
	broken = r.Cells[0]
	broken.Runs, broken.Errors = broken.Runs[:1], []string{"the machine was on fire"}
	return r, broken
}

// parts cuts a text at the sentence that begins what the promise does not cover.
func parts(t *testing.T, text string) (inside, outside string) {
	inside, outside, found := strings.Cut(text, " under faults that the promise does not cover:\n")
	if !found {
		t.Fatalf("no second table in\n%s", text)
	}
	return inside, outside
}

// Every row is printed once, in the table where it belongs.
func TestLong(t *testing.T) {
	r, _ := full()
	var b strings.Builder
	r.markdown(&b)
	_, long, found := strings.Cut(b.String(), "\nAll that was measured")
	if !found {
		t.Fatalf("no long table in\n%s", b.String())
	}
	inside, outside := parts(t, long)
	for _, c := range r.Cells {
		i := slices.IndexFunc(faults, func(f fault) bool { return f.name == c.Fault })
		here, there := inside, outside
		if !covered(faults[i]) {
			here, there = outside, inside
		}
		row := "| " + candidate.Titles[c.Coordinator] + " 3.4 | " + c.Library + " 1.2 | " + c.figures() + " |"
		if strings.Count(here, row) != 1 || strings.Contains(there, row) {
			t.Errorf("%s: the row %s is not just once in its table", c.Fault, row)
		}
	}
}

// The short tables count all runs of a library, and keep what is outside the promise apart.
func TestShort(t *testing.T) {
	r, broken := full()
	var b strings.Builder
	r.short(&b)
	inside, outside := parts(t, b.String())
	for _, want := range []string{
		"| leader elected by | crash | cut off | late answer, then cut off | answers lost | its server cut off | paused, resumed | coordinator restarted | coordinator's leader crashed | two leaders in |\n",
		"| succession 1.2, on etcd 3.4 | none (1 of 2 not measured) | none | none | none | – | none | none | none | 0 of 13 runs |\n",
		"| kazoo Election 1.2, on ZooKeeper 3.4 | none | **2.0 s** | none | none | none | none | none | none | 1 of 16 runs |\n",
		"2026-01-02, 2026-01-03, commit abc, def, n = 1 to 2 for each row, sessions of 6 s, runs at a time: 5, 1 core. It took 21m1s in 2 parts; " +
			"the load average was 0.2 when it began, 2.1 when it ended, and 3.0 at most.\n",
		"Where a row has none in n = 1, two lead in at most 98 % of such runs, with a confidence of 95 %.\n",
	} {
		if !strings.Contains(inside, want) {
			t.Errorf("not in the first part: %s", want)
		}
	}
	for _, want := range []string{
		"| leader elected by | session ended by operator | key deleted by operator | cut off, key deleted | two leaders in |\n",
		"| succession 1.2, on ZooKeeper 3.4 | – | **2.0 s** | **2.0 s** | 2 of 4 runs |\n",
		"- *session ended by operator*, *key deleted by operator*: " + takenAway + "\n",
		"- *cut off, key deleted*: " + takenUnheard + "\n",
		"\nNot measured: crash, succession 1.2 on etcd 3.4: the machine was on fire\n",
	} {
		if !strings.Contains(outside, want) {
			t.Errorf("not in the second part: %s", want)
		}
	}
	if t.Failed() {
		t.Log(b.String())
	}
	if r.failed() == nil {
		t.Error("a run failed, and the report does not")
	}
	broken.Errors = nil
	if err := r.failed(); err != nil {
		t.Errorf("no run failed, and the report does: %v", err)
	}
}

// What was not measured is not taken for what is not possible.
func TestUnmeasured(t *testing.T) {
	r, _ := full()
	r.Cells = slices.DeleteFunc(r.Cells, func(c *cell) bool { return c.Fault == "late" && c.Coordinator == candidate.Consul })
	var b strings.Builder
	r.short(&b)
	if want := "| api.Lock 1.2, on Consul 3.4 | none | **2.0 s** | not measured | none | – |"; !strings.Contains(b.String(), want) {
		t.Errorf("no %s in\n%s", want, b.String())
	}
}

// Where nobody followed a paused leader, nothing shows that two do not lead.
func TestUnfollowed(t *testing.T) {
	r, _ := full()
	for _, c := range r.Cells {
		if c.Fault == "pause" && c.Library == "pg_advisory_lock, pgx" {
			for i := range c.Runs {
				c.Runs[i] = outcome{Vacancy: 61 * s, VacancyOpen: true, Old: oldPaused}
			}
		}
	}
	var b strings.Builder
	r.markdown(&b)
	for _, want := range []string{
		"| pg_advisory_lock, pgx 1.2, on PostgreSQL 3.4 | none | **2.0 s** | – | none | – | nobody followed | none | none | 1 of 10 runs |\n",
		"| PostgreSQL 3.4 | pg_advisory_lock, pgx 1.2 | – | – | – | > 61 s / > 61 s / > 61 s | still paused |\n",
		"Where a row has none in n = 1, two lead",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

// Who had hung up before the late answer came was only cut off, which a remark says.
func TestMissed(t *testing.T) {
	r, _ := full()
	i := slices.IndexFunc(r.Cells, func(c *cell) bool { return c.Fault == "late" && c.Library == "kazoo Election" })
	r.Cells[i].Runs[1].Missed = true
	var b strings.Builder
	r.short(&b)
	if want := "\nMeasured, and the leader had hung up before the answer came, so that it was only cut off: late, kazoo Election 1.2 on ZooKeeper 3.4: in 1 of 2 runs\n"; strings.Count(b.String(), want) != 1 {
		t.Errorf("not once %s in\n%s", want, b.String())
	}
}

// A file of -json is written into a text, which keeps the rest, and a failed run still fails.
func TestInto(t *testing.T) {
	r, _ := full()
	var table strings.Builder
	r.short(&table)
	text := "before\n<!-- table -->\nold\n<!-- /table -->\nafter\n"
	want := "before\n<!-- table -->\n" + table.String() + "<!-- /table -->\nafter\n"
	for range 2 {
		var err error
		text, err = put(t, r, text)
		if err == nil || err.Error() != r.failed().Error() {
			t.Errorf("it ended with %v, want %v", err, r.failed())
		}
		if text != want {
			t.Errorf("the file is\n%s\nwant\n%s", text, want)
		}
	}
}

// Kubernetes may be missing as a whole, and not in part.
func TestIntoWithoutKubernetes(t *testing.T) {
	of := func(c *cell) bool { return c.Coordinator == candidate.Kubernetes }
	r, broken := full()
	broken.Errors, broken.Runs = nil, append(broken.Runs, broken.Runs...)
	broken.Runs = broken.Runs[:2]
	without := &report{N: r.N, Cells: slices.DeleteFunc(slices.Clone(r.Cells), of)}
	if err := without.whole(); err != nil {
		t.Errorf("without Kubernetes: %v", err)
	}
	i := slices.IndexFunc(r.Cells, of)
	if i < 0 {
		t.Fatal("no row of Kubernetes")
	}
	r.Cells = slices.Delete(r.Cells, i, i+1)
	if err := r.whole(); err == nil {
		t.Error("one row of Kubernetes is missing, and the report is taken for whole")
	}
}

// A text stays as it is where it is not clear what to replace, and by what.
func TestIntoRefuses(t *testing.T) {
	const section = "<!-- table -->\n<!-- /table -->\n"
	whole, _ := full()
	lacksRow, _ := full()
	lacksRow.Cells = lacksRow.Cells[1:]
	lacksRun, _ := full()
	kazoo := slices.IndexFunc(lacksRun.Cells, func(c *cell) bool { return c.Library == "kazoo Election" })
	lacksRun.Cells[kazoo].Runs = lacksRun.Cells[kazoo].Runs[1:]
	for _, c := range []struct {
		name, text string
		r          *report
		want       string
	}{
		{"no section", "text\n", whole, "exactly one section"},
		{"no end", "<!-- table -->\n", whole, "exactly one section"},
		{"the wrong way round", "<!-- /table -->\n<!-- table -->\n", whole, "exactly one section"},
		{"two sections", section + section, whole, "exactly one section"},
		{"a row is missing", section, lacksRow, "crash, etcd: succession: not measured 2 times"},
		{"a run is missing", section, lacksRun, "crash, zookeeper: kazoo Election: not measured 2 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, err := put(t, c.r, c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it ended with %v, want %q", err, c.want)
			}
			if text != c.text {
				t.Errorf("%q has become %q", c.text, text)
			}
		})
	}
}

// put saves the report, has the program write it into a text, and returns that.
func put(t *testing.T, r *report, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	saved, file := filepath.Join(dir, "out.json"), filepath.Join(dir, "README.md")
	if err := errors.Join(r.save(saved), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	failed := command(t.Context(), []string{"-from", saved, "-short", "-into", file}, t.Output(), t.Output())
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), failed
}

// An earlier run is gone on with: what it has is not measured again, and what would not fit beside it is refused.
func TestGoOn(t *testing.T) {
	saved := filepath.Join(t.TempDir(), "out.json")
	const only, library = "crash", "^etcd: succession$"
	had, _ := full()
	had.Cells = slices.DeleteFunc(had.Cells, func(c *cell) bool {
		return c.Fault != only || c.Coordinator != candidate.Etcd || c.Library != candidate.Ours
	})
	had.Cells[0].Version = "" // as of this tree
	if err := had.save(saved); err != nil {
		t.Fatal(err)
	}
	on := func(session time.Duration) (*report, error) {
		p := plan{n: 1, jobs: 1, session: session, patience: s, seed: 7, progress: t.Output(), json: saved}
		if err := p.choose(only, library); err != nil {
			t.Fatal(err)
		}
		return p.measure(t.Context())
	}
	r, err := on(6 * s)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 1 || len(r.Cells[0].Runs) != 1 || len(r.Cells[0].Errors) != 1 {
		t.Errorf("a row that had its run has %+v now", r.Cells)
	}
	if n := len(r.Sittings); n != 3 || r.Sittings[2].Seed != 7 || r.Sittings[2].Date != today() {
		t.Errorf("the sittings are %+v", r.Sittings)
	}
	if _, err := on(7 * s); err == nil || !strings.Contains(err.Error(), "has sessions of 6 s, and not of 7 s") {
		t.Errorf("other sessions: %v", err)
	}
	had.Cells[0].Version = "1.2"
	if err := had.save(saved); err != nil {
		t.Fatal(err)
	}
	if _, err := on(6 * s); err == nil || !strings.Contains(err.Error(), "has version 1.2 of etcd: succession") {
		t.Errorf("another version: %v", err)
	}
}

// A seed draws the same for the same run, and something else for each other one.
func TestSeed(t *testing.T) {
	of := func(seed uint32, i, index int) uint32 {
		return (&plan{seed: seed}).seedOf(row{faults[i], libraries[0]}, index)
	}
	first := of(1, 0, 0)
	if again := of(1, 0, 0); again != first {
		t.Errorf("the same run draws with %d, and then with %d", first, again)
	}
	seen := make(map[uint32]bool)
	for _, s := range []uint32{first, of(2, 0, 0), of(1, 1, 0), of(1, 0, 1)} {
		if seen[s] {
			t.Error("two runs draw the same")
		}
		seen[s] = true
	}
}
