// Package licences has the texts that come with a program: those of all modules that it links, and Go's own.
package licences

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// named are the files of a module that say under which terms it may be used.
var named = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$`)

// Of returns the texts for what the Go program links besides the main module of its own. cache is the folder of the
// modules that it was built from; empty is that of go env. It fails if a module has none.
func Of(program, cache string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	env := func(name string) (string, error) {
		out, err := exec.Command("go", "env", name).Output()
		return strings.TrimSpace(string(out)), err
	}
	goroot, err := env("GOROOT")
	if err == nil && cache == "" {
		cache, err = env("GOMODCACHE")
	}
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var b bytes.Buffer
	if err := add(&b, "The Go standard library, "+info.GoVersion, goroot); err != nil {
		return nil, err
	}
	for _, dep := range info.Deps {
		if dep.Replace != nil && modfile.IsDirectoryPath(dep.Replace.Path) { // the library itself
			continue
		}
		if dep.Replace != nil {
			dep = dep.Replace
		}
		path, err := module.EscapePath(dep.Path)
		if err != nil {
			return nil, err
		}
		version, err := module.EscapeVersion(dep.Version)
		if err != nil {
			return nil, err
		}
		if err := add(&b, dep.Path+" "+dep.Version, filepath.Join(cache, filepath.FromSlash(path)+"@"+version)); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// add appends the texts in the folder, under a title.
func add(b *bytes.Buffer, title, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the licence of %s: %w", title, err)
	}
	found := false
	for _, f := range files {
		if !named.MatchString(f.Name()) || !f.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(b, "%s\n%s: %s\n\n%s\n\n", strings.Repeat("=", 80), title, f.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return errors.New(title + " has no licence in " + dir)
	}
	return nil
}
