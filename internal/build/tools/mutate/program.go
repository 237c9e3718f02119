package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed mutant/mutant.go
var switchSource []byte

// A program is packages with all their mutants in them.
type program struct {
	dir     string // from where files are named
	module  string // the path of the module there
	mutants []*mutant
	files   map[string][]byte // as they are compiled
}

// A goPackage is what go list tells of a package.
type goPackage struct {
	ImportPath, Dir, Export, ForTest string
	GoFiles, Deps                    []string
}

func goList(ctx context.Context, args ...string) ([]goPackage, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,Export,ForTest,GoFiles,Deps"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
	}
	var list []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// mutate makes the mutants of the packages that keep wants.
func mutate(ctx context.Context, patterns []string, keep func(*mutant) bool) (*program, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m: %w", err)
	}
	p := &program{dir: dir, files: map[string][]byte{}}
	for line := range strings.Lines(string(module)) { // of a workspace it lists all
		if path, at, _ := strings.Cut(strings.TrimSpace(line), " "); at == dir {
			p.module = path
		}
	}
	if p.module == "" {
		return nil, fmt.Errorf("%s is not the root of a module", dir)
	}
	list, err := goList(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	compiled, err := goList(ctx, append([]string{"-deps", "-export"}, append(patterns, "time", "sync/atomic", "cmp", "os", "strconv", "syscall")...)...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, c := range compiled {
		exports[c.ImportPath] = c.Export
	}
	for _, pkg := range list {
		if err := p.rewrite(pkg, exports, keep); err != nil {
			return nil, fmt.Errorf("%s: %w", pkg.ImportPath, err)
		}
	}
	p.files[filepath.Join(dir, "internal", "mutant", "mutant.go")] = switchSource
	return p, nil
}

func (p *program) switched() string { return p.module + "/internal/mutant" }

// rewrite makes the mutants of one package. A mutant that does not compile is left out, with
// all others of its line.
func (p *program) rewrite(pkg goPackage, exports map[string]string, keep func(*mutant) bool) error {
	fset := token.NewFileSet()
	imports := &imports{fset: fset, switched: p.switched()}
	imports.Importer = importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	sources := map[string][]byte{}
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		path := filepath.Join(pkg.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		sources[path] = text
		files = append(files, f)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{}}
	self, err := (&types.Config{Importer: imports}).Check(pkg.ImportPath, fset, files, info)
	if err != nil {
		return err
	}
	bad := map[string]bool{} // files and lines
	for {
		next := len(p.mutants)
		var mutants []*mutant
		rewritten := map[string][]byte{}
		for _, f := range files {
			path := fset.Position(f.Package).Filename
			shown, err := filepath.Rel(p.dir, path)
			if err != nil {
				return err
			}
			r := &rewriter{path: shown, pkg: pkg.ImportPath, source: sources[path], fset: fset, info: info, self: self, next: &next, switched: p.switched()}
			r.keep = func(m *mutant) bool { return !bad[fmt.Sprint(path, m.line)] && keep(m) }
			if text := r.rewrite(f); text != nil {
				rewritten[path] = text
			}
			mutants = append(mutants, r.mutants...)
		}
		wrong, err := p.check(pkg, imports, sources, rewritten)
		if err != nil {
			return err
		}
		if len(wrong) == 0 {
			p.mutants = append(p.mutants, mutants...)
			maps.Copy(p.files, rewritten)
			return nil
		}
		for _, at := range wrong {
			key := fmt.Sprint(at.Filename, at.Line)
			if bad[key] {
				return fmt.Errorf("%v does not compile, and has no mutants: %s", at, rewritten[at.Filename])
			}
			bad[key] = true
		}
	}
}

// check returns where the package with its mutants does not compile.
func (p *program) check(pkg goPackage, imports types.Importer, sources, rewritten map[string][]byte) ([]token.Position, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		text := sources[path]
		if r, ok := rewritten[path]; ok {
			text = r
		}
		f, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("%w, in\n%s", err, text)
		}
		files = append(files, f)
	}
	var wrong []token.Position
	config := types.Config{Importer: imports, Error: func(err error) {
		if e := (types.Error{}); errors.As(err, &e) && !e.Soft {
			wrong = append(wrong, fset.Position(e.Pos))
		}
	}}
	_, err := config.Check(pkg.ImportPath, fset, files, nil)
	if err != nil && len(wrong) == 0 {
		return nil, err
	}
	return wrong, nil
}

// imports is what a package imports, and package mutant.
type imports struct {
	types.Importer
	fset     *token.FileSet
	switched string
	mutant   *types.Package
}

func (i *imports) Import(path string) (*types.Package, error) {
	if path != i.switched {
		return i.Importer.Import(path)
	}
	if i.mutant == nil {
		f, err := parser.ParseFile(i.fset, "mutant.go", switchSource, 0)
		if err != nil {
			return nil, err
		}
		i.mutant, err = (&types.Config{Importer: i.Importer}).Check(path, i.fset, []*ast.File{f}, nil)
		if err != nil {
			return nil, err
		}
	}
	return i.mutant, nil
}

// overlay writes the files below dir, and what go build wants to know of them.
func (p *program) overlay(dir string) (string, error) {
	replace := map[string]string{}
	for i, path := range slices.Sorted(maps.Keys(p.files)) {
		at := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(path)))
		if err := os.WriteFile(at, p.files[path], 0o644); err != nil {
			return "", err
		}
		replace[path] = at
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o644)
}
