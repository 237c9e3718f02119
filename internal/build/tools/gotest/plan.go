package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A plan is what the arguments say.
type plan struct {
	lanes  []*lane
	then   []*program
	alone  []*program // that run when nothing else does that is not idle
	builds []*build   // in the order in which the lanes want them
	makes  [][]*need  // lists that run beside each other
	before []*need    // those for which all lanes wait but idle ones
	notes  bool       // what passes is noted
	again  bool       // what has passed is not run
	files  []string   // the commands whose success depends on the files alone
}

// A lane is a list of programs that run one after the other.
type lane struct {
	idle     bool
	programs []*program // that have not begun
	now      *program   // that has begun last
}

// A build is what one argument names: programs of a module that are built with the same flags.
type build struct {
	module   string
	flags    []string // of go test
	needs    []*need  // for building
	choice   choice
	tested   []tested
	programs []*program
}

// A program is the test program of one package, and the flags that it is run with.
type program struct {
	pkg, dir string // import path, folder
	key      string // tells it from others in what is known of earlier runs
	path     string
	flags    []string
	env      []string
	needs    []*need // for building and running
	state    state
	idle     bool // it runs with the lowest priority
}

// A state of a program. One that cannot be built has ended.
type state int

const (
	unbuilt state = iota
	built
	running
	ended
)

// A need is what a command makes before programs can be built or run.
type need struct {
	name     string
	command  []string
	priority priority
	made     bool
	err      error // why it has not been made
}

// makes has the words before lists of commands that make something, and their priority.
var makes = map[string]priority{"--make": behind, "--before": usual, "--low": idle}

// parse reads the arguments, and finds the packages that have tests.
func parse(args []string, stderr io.Writer) (*plan, error) {
	p := new(plan)
	type section struct {
		kind string
		args []string
	}
	sections := []section{{kind: "--"}}
	needs := make(map[string]*need)
	for _, arg := range args {
		last := &sections[len(sections)-1]
		_, begins := makes[arg]
		at, names := makes[last.kind]
		switch {
		case arg == "--" || arg == "--idle" || arg == "--then" || arg == "--alone" || arg == "--all":
			sections = append(sections, section{kind: arg})
		case arg == "--passed" || arg == "--again":
			sections = append(sections, section{kind: arg})
			p.notes, p.again = true, arg == "--again"
		case last.kind == "--passed" || last.kind == "--again":
			p.files = append(p.files, arg)
		case begins:
			sections = append(sections, section{kind: arg})
			p.makes = append(p.makes, nil)
		case names:
			words := strings.Fields(arg)
			if len(words) < 2 {
				return nil, fmt.Errorf("%q names no command", arg)
			}
			n := &need{name: words[0], command: words[1:], priority: at}
			needs[n.name] = n
			p.makes[len(p.makes)-1] = append(p.makes[len(p.makes)-1], n)
			if last.kind == "--before" {
				p.before = append(p.before, n)
			}
		default:
			last.args = append(last.args, arg)
		}
	}
	var first [][]*build // by lane
	var rest []*build
	var whole []tested
	for _, s := range sections {
		var all []*build
		var programs []*program
		for _, arg := range s.args {
			b, err := newBuild(arg, needs, stderr)
			if err != nil {
				return nil, err
			}
			all = append(all, b)
			programs = append(programs, b.programs...)
		}
		switch s.kind {
		case "--", "--idle":
			p.lanes = append(p.lanes, &lane{idle: s.kind == "--idle", programs: programs})
			first = append(first, all)
		case "--then":
			p.then = append(p.then, programs...)
			rest = append(rest, all...)
		case "--alone":
			p.alone = append(p.alone, programs...)
			rest = append(rest, all...)
		case "--all":
			for _, b := range all {
				whole = append(whole, b.tested...)
			}
		}
	}
	// The first of each lane, then the second of each.
	for i := 0; len(first) > 0; i++ {
		var more [][]*build
		for _, all := range first {
			if i < len(all) {
				p.builds = append(p.builds, all[i])
				more = append(more, all)
			}
		}
		first = more
	}
	p.builds = append(p.builds, rest...)
	if left := leftOver(p.builds, whole); len(left) > 0 {
		return nil, fmt.Errorf("no argument runs: %s", strings.Join(left, ", "))
	}
	return p, nil
}

// newBuild reads one argument.
func newBuild(arg string, needs map[string]*need, stderr io.Writer) (*build, error) {
	words := strings.Fields(arg)
	if len(words) == 0 {
		return nil, errors.New("an argument is empty")
	}
	b := &build{module: words[0]}
	var packages, flags []string
	var said []string // what tells its programs from those of another argument
	var all []*need
	for _, word := range words[1:] {
		name, isNeed := strings.CutPrefix(word, "+")
		switch {
		case isNeed && needs[name] == nil:
			return nil, fmt.Errorf("%q needs %s, which no command makes", arg, name)
		case isNeed:
			if all = append(all, needs[name]); packages == nil {
				b.needs = append(b.needs, needs[name])
			}
		case word == "@real":
			b.choice.real = true
			said = append(said, word)
		case word == "@alone":
			b.choice.alone = true
			said = append(said, word)
		case word == "@unraced":
			b.choice.unraced = true
			said = append(said, word)
		case strings.HasPrefix(word, "-"):
			said = append(said, word)
			if packages == nil {
				b.flags = append(b.flags, word)
			} else {
				flags = append(flags, word)
				b.choice.given = b.choice.given || strings.HasPrefix(word, "-test.run=") || strings.HasPrefix(word, "-test.skip=")
			}
		default:
			packages = append(packages, word)
		}
	}
	if packages == nil {
		return nil, fmt.Errorf("%q names no package", arg)
	}
	b.choice.race = slices.Contains(b.flags, "-race")
	var err error
	if b.tested, err = list(b.module, b.flags, packages, stderr); err != nil {
		return nil, err
	}
	for _, t := range b.tested {
		for _, flag := range flags {
			if pattern, ok := strings.CutPrefix(flag, "-test.run="); ok {
				if name := t.unknown(pattern); name != "" {
					return nil, fmt.Errorf("no test of %s is called as in %q: %s", t.pkg, arg, name)
				}
			}
		}
		if chosen, ok := b.choice.flags(t); ok {
			b.programs = append(b.programs, &program{
				pkg: t.pkg, dir: t.dir, key: t.pkg + " " + strings.Join(said, " "),
				flags: append(chosen, flags...), env: b.choice.environment(), needs: all,
			})
		}
	}
	return b, nil
}

// key tells a command from others in what is known of earlier runs.
func (n *need) key() string { return n.name + " " + strings.Join(n.command, " ") }

// lacks says why a program that needs n is not tested.
func (n *need) lacks() error { return fmt.Errorf("it needs %s, and %w", n.name, n.err) }

// missing returns the first of the needs that could not be made, nil if there is none.
func missing(needs []*need) *need {
	for _, n := range needs {
		if n.err != nil {
			return n
		}
	}
	return nil
}

// there reports whether all needs have been made.
func there(needs []*need) bool {
	for _, n := range needs {
		if !n.made {
			return false
		}
	}
	return true
}
