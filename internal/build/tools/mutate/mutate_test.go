package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The program of the tests, and its tests.
const program1 = `package p

import (
	"errors"
	"fmt"
	"time"
)

// Kept says how long something is kept.
const Kept = 3 * time.Second

type log struct{ lines int }

func (l *log) Info(string) { l.lines++ }

type place struct {
	n    int
	seen bool
	log  log
}

func (p place) String() string { return fmt.Sprint(p.n + 1) }

var errFull = errors.New("full")

func (p *place) enter(n int, now, since time.Time) error {
	if n > 4 && !p.seen || p.n < 0 {
		return fmt.Errorf("%w: %d", errFull, n+1)
	}
	if p.seen {
		p.log.Info("seen")
	}
	p.seen = true
	for i := 0; i < n; i++ {
		if i == 2 {
			continue
		}
		p.n += i
	}
	if now.Sub(since) > Kept {
		return errors.New("late")
	}
	return nil
}

func unused(d time.Duration) time.Time { return time.Time{}.Add(min(d, time.Hour)) }

func forever(n int) int {
	for {
		if n > 3 {
			return n
		}
		n++
	}
}
`

const tests1 = `package p

import (
	"errors"
	"testing"
	"time"
)

func TestEnter(t *testing.T) {
	at := time.Unix(0, 0)
	var p place
	if err := p.enter(5, at, at); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if err := p.enter(4, at, at); err != nil || p.n != 4 {
		t.Error(p, err)
	}
	if err := p.enter(1, at.Add(4*time.Second), at); err == nil {
		t.Error("not late")
	}
}

func TestForever(t *testing.T) {
	if forever(1) != 4 {
		t.Error("not 4")
	}
}

func TestWithParts(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		t.Run(name, func(t *testing.T) {
			for until := time.Now().Add(100 * time.Millisecond); time.Now().Before(until); {
				forever(1)
			}
		})
	}
}

func TestBroken(t *testing.T) { forever(4); t.Error("always") }
`

// module makes a module of that program in a new folder, and goes there.
func module(t *testing.T) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module example.org/p\n\ngo 1.26\n", "p.go": program1, "p_test.go": tests1} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// What is changed, and what is not.
func TestMutants(t *testing.T) {
	module(t)
	p, err := mutate(t.Context(), []string{"."}, func(*mutant) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, m := range p.mutants {
		if m.number != i || !strings.Contains(strings.Split(program1, "\n")[m.line-1], strings.Split(m.text, " … ")[0]) {
			t.Errorf("mutant %d has number %d and line %d", i, m.number, m.line)
		}
		got = append(got, strings.TrimPrefix(m.name(), "p.go "))
	}
	want := []string{
		"place.enter: n > 4 && !p.seen || p.n < 0: always",
		"place.enter: n > 4 && !p.seen: gone from n > 4 && !p.seen || p.n < 0",
		"place.enter: p.n < 0: gone from n > 4 && !p.seen || p.n < 0",
		"place.enter: n > 4: gone from n > 4 && !p.seen",
		"place.enter: !p.seen: gone from n > 4 && !p.seen",
		"place.enter: n > 4: >=",
		"place.enter: p.n < 0: <=",
		`place.enter: return fmt.Errorf("%w: %d", errFull, n+1): no error`,
		"place.enter: p.seen = true: removed",
		"place.enter: i < n: never",
		"place.enter: i < n: <=",
		"place.enter: i == 2: never",
		"place.enter: i == 2: always",
		"place.enter: 2: one more",
		"place.enter: continue: break",
		"place.enter: p.n += i: removed",
		"place.enter: now.Sub(since) > Kept: never",
		"place.enter: now.Sub(since) > Kept: always",
		"place.enter: now.Sub(since) > Kept: >=",
		"place.enter: Kept: twice",
		`place.enter: return errors.New("late"): no error`,
		"unused: time.Time{}.Add(min(d, time.Hour)): minus",
		"unused: min(d, time.Hour): max",
		"unused: time.Hour: twice",
		"forever: n > 3: never",
		"forever: n > 3: always",
		"forever: n > 3: >=",
		"forever: n++: removed",
		"log.Info: l.lines++: removed",
		"place.enter: 0: one more",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the mutants are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for path, text := range p.files {
		if filepath.Base(path) == "p.go" && bytes.Count(text, []byte("\n")) != strings.Count(program1, "\n") {
			t.Errorf("lines have moved:\n%s", text)
		}
	}
}

// Each mutant meets the tests that reach it, and no others.
func TestKill(t *testing.T) {
	module(t)
	equivalent := filepath.Join(t.TempDir(), "equivalent.txt")
	list := "# a comment\n\np.go forever: n > 3: >=\n  not really\np.go gone: x: never\np.go log.Info: l.lines++: removed\n\tnobody\n\treads them\n"
	if err := os.WriteFile(equivalent, []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "log")
	o := options{
		suites: []suite{{patterns: []string{"."}}}, equivalent: equivalent, log: log, atOnce: 2, most: time.Minute,
		long: 100 * time.Millisecond, packages: []string{"."}, least: 10,
	}
	ok, err := o.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		t.Error("the list names a mutant that there is not, and nothing is said of it")
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	fates := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Split(strings.TrimSpace(line), "\t")
		fates[strings.TrimPrefix(words[2], "p.go ")] = words[0] + " " + words[len(words)-1]
	}
	for name, want := range map[string]string{
		"place.enter: n > 4 && !p.seen || p.n < 0: always":            "killed example.org/p TestEnter",
		"place.enter: n > 4: >=":                                      "killed example.org/p TestEnter",
		"place.enter: p.n < 0: <=":                                    "killed example.org/p TestEnter",
		"place.enter: p.n < 0: gone from n > 4 && !p.seen || p.n < 0": unreached,
		"place.enter: now.Sub(since) > Kept: >=":                      unreached, // nothing is kept just so long
		"place.enter: Kept: twice":                                    "killed example.org/p TestEnter",
		"unused: min(d, time.Hour): max":                              unreached,
		"forever: n > 3: never":                                       "killed example.org/p",
		"place.enter: !p.seen: gone from n > 4 && !p.seen":            unreached,
		"place.enter: p.seen = true: removed":                         survived,
	} {
		if got := fates[name]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"forever: n > 3: >=", "log.Info: l.lines++: removed"} {
		if fates[name] != "" {
			t.Errorf("%s is named as equivalent, and was run", name)
		}
	}
	o.least = 99
	o.equivalent = ""
	o.run = "seen = true"
	if ok, err := o.do(t.Context()); ok || err != nil {
		t.Errorf("of what the tests do not notice: %t, %v", ok, err)
	}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	one := func(pkg, fate string) result {
		return result{mutant: &mutant{pkg: "example.org/m/" + pkg, file: pkg + "/f.go"}, fate: fate}
	}
	total := report(&out, "example.org/m", []result{one("a", killed), one("a", survived), one("b", killed), one("b", unreached), one("b", killed)},
		map[string]int{"example.org/m/a": 2})
	if total != (count{all: 7, equivalent: 2, killed: 3, survived: 1, unreached: 1}) || total.fraction() != 0.6 {
		t.Errorf("in all %+v", total)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var fields []string
	for _, l := range lines[len(lines)-3:] {
		fields = append(fields, strings.Join(strings.Fields(l), " "))
	}
	want := []string{"4 2 1 0 1 0 50.0 % a", "3 0 2 0 0 1 66.7 % b", "7 2 3 0 1 1 60.0 % all"}
	if !slices.Equal(fields, want) {
		t.Errorf("the table is %q, want %q", fields, want)
	}
}

func TestEquivalentWithoutReason(t *testing.T) {
	for _, text := range []string{"p.go f: x: never\n", "p.go f: x: never\n  why\np.go f: x: never\n  why\n"} {
		file := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if list, err := readEquivalent(file); err == nil {
			t.Errorf("%q is read as %v", text, list)
		}
	}
}

func TestParseDiff(t *testing.T) {
	diff := "--- a/old.go\n+++ b/a/b.go\n@@ -3 +3,2 @@ func f\n-x\n+y\n+z\n@@ -9,2 +10,0 @@\n-x\n-y\n--- a/c.go\n+++ b/c.go\n@@ -0,0 +1 @@\n+x\n"
	changed, err := parseDiff(diff)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(changed), "map[a/b.go:map[3:true 4:true] c.go:map[1:true]]"; got != want {
		t.Errorf("changed are %s, want %s", got, want)
	}
}
