package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A suite is packages of tests, and how they are run.
type suite struct {
	patterns, flags []string
}

// parseSuite reads what -with says: packages, then flags.
func parseSuite(s string) (suite, error) {
	words := strings.Fields(s)
	n := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
	if n < 0 {
		n = len(words)
	}
	if n == 0 {
		return suite{}, fmt.Errorf("%q names no package", s)
	}
	for _, w := range words[n:] {
		if strings.HasPrefix(w, "-test.run=") && strings.Contains(w, "/") {
			return suite{}, fmt.Errorf("%s chooses subtests; leave others out by -test.skip", w)
		}
	}
	return suite{words[:n], words[n:]}, nil
}

// A binary is the tests of one package, compiled with all mutants.
type binary struct {
	pkg, dir, file string
	flags          []string
}

// A unit is what is run by itself, to see which mutants it reaches: a test or, where that takes long, some of its subtests.
type unit struct {
	bin     *binary
	parents []string // the tests that they are subtests of
	names   []string
	cost
	reached []int
}

func (u *unit) String() string {
	return u.bin.pkg + " " + strings.Join(append(slices.Clone(u.parents), u.names[0]), "/")
}

// A cost is what a run takes: of the processor, and of time. On a busy machine these differ.
type cost struct{ processor, time time.Duration }

// portions is how many units a test becomes that takes long.
const portions = 8

// A runner runs tests.
type runner struct {
	dir    string // for what they leave
	atOnce int
	long   time.Duration // what takes more of the processor is run in portions
	tell   func(format string, args ...any)
}

// build compiles the tests of the suites that link a package with mutants.
func (r *runner) build(ctx context.Context, p *program, suites []suite) ([]*binary, error) {
	overlay, err := p.overlay(r.dir)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, m := range p.mutants {
		changed[m.pkg] = true
	}
	var all []*binary
	for _, s := range suites {
		list, err := goList(ctx, append([]string{"-test"}, s.patterns...)...)
		if err != nil {
			return nil, err
		}
		for _, pkg := range list {
			name, ok := strings.CutSuffix(pkg.ImportPath, ".test")
			if !ok || !slices.ContainsFunc(pkg.Deps, func(d string) bool { d, _, _ = strings.Cut(d, " "); return changed[d] }) {
				continue
			}
			dir := pkg.Dir
			b := &binary{pkg: name, dir: dir, flags: s.flags, file: filepath.Join(r.dir, strconv.Itoa(len(all))+".test")}
			r.tell("compiling the tests of %s", name)
			cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.file, name)
			if out, err := cmd.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("go test -c %s: %w\n%s", name, err, out)
			}
			all = append(all, b)
		}
	}
	return all, nil
}

// An outcome is how a run of tests has ended.
type outcome struct {
	cost
	ok, late bool
	output   []byte
}

// enough is what a run may take that usually takes c.
func (c cost) enough() cost {
	return cost{processor: 3*time.Second + 4*c.processor, time: 20*time.Second + 8*c.time}
}

// run runs tests that have the same parents, as mutant n, or as the program is if n is negative. What they reach goes to
// the file reached, if it is not empty.
func (r *runner) run(ctx context.Context, b *binary, parents, names []string, n int, reached string, enough cost) outcome {
	ctx, cancel := context.WithTimeout(ctx, enough.time)
	defer cancel()
	temp, err := os.MkdirTemp(r.dir, "run-")
	if err != nil {
		return outcome{output: []byte(err.Error())}
	}
	defer os.RemoveAll(temp)
	// A mutant may compute for ever, or fill the memory.
	limits := fmt.Sprintf(`ulimit -t %d -v 8000000; exec "$0" "$@"`, int(enough.processor.Seconds())+1)
	args := []string{"-c", limits, b.file}
	args = append(args, b.flags...)
	args = append(args, "-test.run="+pattern(parents, names), "-test.failfast", "-test.timeout=0")
	if reached != "" {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "MUTANT="+strconv.Itoa(n), "MUTANT_REACHED="+reached, "SUCCESSION_LANE=unraced")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := &head{left: 1 << 20}
	cmd.Stdout, cmd.Stderr = out, out
	began := time.Now()
	err = cmd.Run()
	o := outcome{ok: err == nil, output: out.Bytes()}
	o.time = time.Since(began)
	if s := cmd.ProcessState; s != nil {
		o.processor = s.UserTime() + s.SystemTime()
	}
	o.late = errors.Is(ctx.Err(), context.DeadlineExceeded) || o.processor > enough.processor
	return o
}

// head keeps the beginning of what is written.
type head struct {
	bytes.Buffer
	left int
}

func (h *head) Write(p []byte) (int, error) {
	n := min(len(p), h.left)
	h.left -= n
	h.Buffer.Write(p[:n])
	return len(p), nil
}

// pattern is the -test.run of tests that have the same parents.
func pattern(parents, names []string) string {
	var parts, last []string
	for _, p := range parents {
		parts = append(parts, "^"+regexp.QuoteMeta(p)+"$")
	}
	for _, n := range names {
		last = append(last, regexp.QuoteMeta(n))
	}
	return strings.Join(append(parts, "^("+strings.Join(last, "|")+")$"), "/")
}

// survey runs each test once as the program is, and notes what it reaches. It returns the
// tests that pass, and says which do not.
func (r *runner) survey(ctx context.Context, binaries []*binary) (passed []*unit, failed []string, err error) {
	var todo []*unit
	for _, b := range binaries {
		cmd := exec.CommandContext(ctx, b.file, "-test.list=^(Test|Example|Fuzz)")
		cmd.Dir = b.dir
		out, err := cmd.Output()
		if err != nil {
			return nil, nil, fmt.Errorf("the tests of %s: %w", b.pkg, err)
		}
		chosen, before := regexp.MustCompile(b.chosen()), len(todo)
		for _, name := range strings.Fields(string(out)) {
			if chosen.MatchString(name) {
				todo = append(todo, &unit{bin: b, names: []string{name}})
			}
		}
		if len(todo) == before && b.chosen() != "" {
			return nil, nil, fmt.Errorf("no test of %s is called as in %s", b.pkg, b.chosen())
		}
	}
	var mu sync.Mutex
	add := func(u *unit, o outcome, reached []int) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !o.ok && bytes.Contains(o.output, []byte("lane: the test runner")): // it waits for servers
		case !o.ok:
			failed = append(failed, fmt.Sprintf("%v: %s", u, lastLine(o.output)))
		case len(reached) > 0:
			u.cost, u.reached = o.cost, reached
			passed = append(passed, u)
		}
	}
	r.tell("%d tests are run without a mutant", len(todo))
	var long []longTest
	each(r.atOnce, todo, func(u *unit) {
		o, reached := r.look(ctx, u)
		parts := u.split(o)
		if o.processor < r.long || len(parts) < 2 || !o.ok {
			add(u, o, reached)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		long = append(long, longTest{u, o, reached, parts})
	})
	r.tell("%d long tests are run in parts without a mutant", len(long))
	each(r.atOnce, long, func(l longTest) {
		reached := make([][]int, len(l.parts))
		outcomes := make([]outcome, len(l.parts))
		for i, u := range l.parts {
			if outcomes[i], reached[i] = r.look(ctx, u); !outcomes[i].ok { // it needs the others
				add(l.unit, l.outcome, l.reached)
				return
			}
		}
		for i, u := range l.parts {
			add(u, outcomes[i], reached[i])
		}
	})
	r.tell("these take %v of the processor", total(passed))
	return passed, failed, ctx.Err()
}

// A longTest is a test that takes long, and its parts.
type longTest struct {
	*unit
	outcome
	reached []int
	parts   []*unit
}

func total(units []*unit) (sum time.Duration) {
	for _, u := range units {
		sum += u.processor
	}
	return sum.Round(time.Millisecond)
}

// split returns the subtests of a test in portions, as its output has named them.
func (u *unit) split(o outcome) (parts []*unit) {
	path := append(slices.Clone(u.parents), u.names[0])
	names := children(o.output, path)
	size := (len(names) + portions - 1) / portions
	for some := range slices.Chunk(names, max(1, size)) {
		parts = append(parts, &unit{bin: u.bin, parents: path, names: some})
	}
	return parts
}

// chosen is the pattern of the tests that the flags choose. Of subtests they choose by -test.skip, as each run has a -test.run
// of its own.
func (b *binary) chosen() string {
	for _, f := range b.flags {
		if p, ok := strings.CutPrefix(f, "-test.run="); ok {
			return p
		}
	}
	return ""
}

func (r *runner) look(ctx context.Context, u *unit) (outcome, []int) {
	f, err := os.CreateTemp(r.dir, "reached-")
	if err != nil {
		return outcome{output: []byte(err.Error())}, nil
	}
	f.Close()
	defer os.Remove(f.Name())
	o := r.run(ctx, u.bin, u.parents, u.names, -1, f.Name(), cost{20 * time.Minute, 20 * time.Minute})
	text, _ := os.ReadFile(f.Name())
	var reached []int
	for _, word := range strings.Fields(string(text)) {
		if n, err := strconv.Atoi(word); err == nil {
			reached = append(reached, n)
		}
	}
	slices.Sort(reached)
	return o, slices.Compact(reached)
}

// children returns the names of the subtests of a test that has printed its output.
func children(output []byte, path []string) (names []string) {
	parent := "=== RUN   " + strings.Join(path, "/") + "/"
	for s := bufio.NewScanner(bytes.NewReader(output)); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), parent); ok && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names
}

func lastLine(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	for _, l := range slices.Backward(lines) {
		if l = strings.TrimSpace(l); l != "FAIL" && l != "" && !strings.HasPrefix(l, "exit status") {
			return l
		}
	}
	return ""
}

// each does something with each of all, so many at once.
func each[T any](atOnce int, all []T, do func(T)) {
	left := make(chan T, len(all))
	for _, x := range all {
		left <- x
	}
	close(left)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for x := range left {
				do(x)
			}
		})
	}
	workers.Wait()
}
