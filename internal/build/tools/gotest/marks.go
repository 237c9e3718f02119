package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A choice says which tests of its packages an argument runs.
type choice struct {
	real, unraced bool // only those that say so
	alone         bool // the same
	race          bool // with the race detector
	given         bool // the argument chooses for itself, by -test.run
}

// A marked is a test that says in its first line, by a call of package lane, how it is to be run, or that
// is not built with the race detector.
type marked struct {
	name          string
	real, unraced bool
	alone         bool
	never         bool // not built with the race detector
}

// takes reports whether the argument runs the test.
func (c choice) takes(m marked) bool {
	raceIsFine := !c.race || !m.unraced || c.unraced
	return m.real == c.real && m.alone == c.alone && (m.unraced || !c.unraced) && raceIsFine && !(c.race && m.never)
}

// flags returns what makes a test program run what the argument takes of its tests. ok is false if that is nothing.
func (c choice) flags(t tested) (flags []string, ok bool) {
	if c.given {
		return nil, true
	}
	var taken, left []string
	for _, m := range t.marked {
		if c.takes(m) {
			taken = append(taken, m.name)
		} else {
			left = append(left, m.name)
		}
	}
	these := func(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }
	switch {
	case c.real || c.unraced || c.alone:
		return []string{"-test.run=" + these(taken)}, len(taken) > 0
	case len(left) > 0:
		return []string{"-test.skip=" + these(left)}, t.plain || len(taken) > 0
	default:
		return nil, true
	}
}

// seenBy begins an environment variable that package lane reads.
const seenBy = "SUCCESSION_LANE="

// environment returns what tells package lane which tests the test runner has meant to be run.
func (c choice) environment() []string {
	if c.given {
		return nil
	}
	seen := seenBy
	if c.real {
		seen += "real "
	}
	if c.alone {
		seen += "alone "
	}
	if c.unraced || !c.race {
		seen += "unraced"
	}
	return []string{seen}
}

// A tested is a package that has tests.
type tested struct {
	pkg, dir string
	files    []string
	tests    []string
	plain    bool // some of its tests say nothing
	marked   []marked
}

// list finds the packages that have tests, and what those say.
func list(module string, flags, packages []string, stderr io.Writer) ([]tested, error) {
	all, err := files(module, without(flags, "-race"), packages, stderr)
	if err != nil {
		return nil, err
	}
	raced, err := files(module, append(without(flags, "-race"), "-race"), packages, stderr)
	if err != nil {
		return nil, err
	}
	for i := range all {
		t := &all[i]
		j := slices.IndexFunc(raced, func(r tested) bool { return r.pkg == t.pkg })
		for _, file := range t.files {
			tests, err := marks(filepath.Join(t.dir, file))
			if err != nil {
				return nil, err
			}
			for _, m := range tests {
				t.tests = append(t.tests, m.name)
				m.never = j < 0 || !slices.Contains(raced[j].files, file)
				m.unraced = m.unraced || m.never
				if m.real || m.unraced || m.alone {
					t.marked = append(t.marked, m)
				} else {
					t.plain = true
				}
			}
		}
	}
	return all, nil
}

// files lists the files with tests of each package.
func files(module string, flags, packages []string, stderr io.Writer) (all []tested, err error) {
	argv := slices.Concat([]string{"list", "-find", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .TestGoFiles \" \"}} {{join .XTestGoFiles \" \"}}"}, flags, packages)
	cmd := exec.Command("go", argv...)
	cmd.Dir = module
	cmd.Stderr = stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", module, err)
	}
	for line := range bytes.Lines(out) {
		words := strings.Split(strings.TrimSpace(string(line)), "\t")
		if len(words) == 3 {
			all = append(all, tested{pkg: words[0], dir: words[1], files: strings.Fields(words[2])})
		}
	}
	return all, nil
}

// testName is what tests, examples and fuzz targets are called.
var testName = regexp.MustCompile(`^(Test|Example|Fuzz)`)

// marks returns the tests of a file, with what they say in their first lines.
func marks(file string) (all []marked, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !testName.MatchString(fn.Name.Name) || fn.Name.Name == "TestMain" {
			continue
		}
		m := marked{name: fn.Name.Name}
		for _, s := range fn.Body.List {
			mark := laneCall(s)
			m.real = m.real || mark == "Real"
			m.unraced = m.unraced || mark == "Unraced"
			m.alone = m.alone || mark == "Alone"
			if mark == "" {
				break // a mark below the first lines is refused when the test calls it
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// unknown returns a part of the pattern of -test.run that no test of the package is called as; it is empty if there is none.
// A pattern may be a list of names, in which each is expected.
func (t tested) unknown(pattern string) string {
	names, isList := strings.CutPrefix(strings.TrimSuffix(pattern, ")$"), "^(")
	for name := range strings.SplitSeq(names, "|") {
		if isList {
			name = "^" + name + "$"
		}
		name, _, _ = strings.Cut(name, "/") // subtests are not known here
		called, err := regexp.Compile(name)
		if err != nil || !slices.ContainsFunc(t.tests, called.MatchString) {
			return name
		}
	}
	return ""
}

// laneCall returns the name of the function of package lane that a statement calls.
func laneCall(s ast.Stmt) string {
	e, ok := s.(*ast.ExprStmt)
	if !ok {
		return ""
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok && x.Name == "lane" {
		return sel.Sel.Name
	}
	return ""
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

// leftOver returns the packages of whole that no argument names, and the tests that no argument runs, of the packages that
// arguments name without -test.run.
func leftOver(builds []*build, whole []tested) (names []string) {
	taken := make(map[string]bool) // by package and test
	for _, t := range whole {
		if len(t.tests) > 0 {
			taken[t.pkg] = slices.ContainsFunc(builds, func(b *build) bool {
				return slices.ContainsFunc(b.tested, func(o tested) bool { return o.pkg == t.pkg })
			})
		}
	}
	for _, b := range builds {
		if b.choice.given {
			continue
		}
		for _, t := range b.tested {
			plain := b.choice == choice{race: b.choice.race}
			if t.plain {
				key := t.pkg + "'s tests"
				taken[key] = taken[key] || plain
			}
			for _, m := range t.marked {
				key := t.pkg + " " + m.name
				taken[key] = taken[key] || b.choice.takes(m)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		if !taken[name] {
			names = append(names, name)
		}
	}
	return names
}
