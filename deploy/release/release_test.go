//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/succession-dev/succession/deploy/internal/build"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// A release is made of a clone that has the tags: what it publishes can be installed and required by its version alone, and
// everything that belongs to the command is there.
func TestRelease(t *testing.T) {
	lane.All(t)
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	version, err := next(root)
	if err != nil {
		t.Fatal(err)
	}
	clone, out := filepath.Join(t.TempDir(), "clone"), filepath.Join(t.TempDir(), "release")
	run(t, root, nil, "git", "clone", "--quiet", "--no-tags", root, clone)
	make := func() (string, error) {
		cmd := exec.Command("go", "run", "./release", "-o", out, "-platforms", "linux/"+runtime.GOARCH+",windows/amd64")
		cmd.Dir = filepath.Join(clone, "deploy")
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	for file, says := range unreleased {
		if said, err := make(); err == nil || !strings.Contains(said, "still says") {
			t.Fatalf("before %s is changed: %v\n%s", file, err, said)
		}
		path := filepath.Join(clone, file)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), says, version)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		run(t, clone, nil, "git", "-c", "user.name=release", "-c", "user.email=release@succession.example", "commit", "--quiet", "-m", "release: "+version, file)
	}
	// Without the tags it says which there must be: they are the commands to paste.
	said, err := make()
	if err == nil || !strings.Contains(said, "\ngit tag "+version+"\n") {
		t.Fatalf("without tags: %v\n%s", err, said)
	}
	for _, line := range strings.Split(said, "\n") {
		if strings.HasPrefix(line, "git tag ") {
			run(t, clone, nil, "sh", "-c", line)
		}
	}
	if said, err := make(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	run(t, out, nil, "sha256sum", "--check", "--strict", "SHA256SUMS")

	base := filepath.Join(out, "succession_"+strings.TrimPrefix(version, "v")+"_linux_"+runtime.GOARCH)
	dir := t.TempDir()
	run(t, dir, nil, "tar", "-xzf", base+".tar.gz")
	if answer := run(t, dir, nil, "./succession", "version"); !strings.HasPrefix(answer, "succession "+version+" ") {
		t.Errorf("the command is %q", answer)
	}
	third, err := os.ReadFile(filepath.Join(dir, "THIRD-PARTY"))
	if err != nil || !strings.Contains(string(third), "\ngithub.com/go-zookeeper/zk v") {
		t.Errorf("the licences of others: %.200s, %v", third, err)
	}
	var sbom struct{ Components []struct{ Name string } }
	text, err := os.ReadFile(base + ".cdx.json")
	if err == nil {
		err = json.Unmarshal(text, &sbom)
	}
	if err != nil || len(sbom.Components) < 10 {
		t.Errorf("what it links: %d components, %v", len(sbom.Components), err)
	}

	// The program of the README, and whatever else has a version, need no more than the README says.
	m := &maker{out: out, cache: t.TempDir()}
	user := t.TempDir()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindSubmatch(readme)
	if program == nil {
		t.Fatal("the README has no program")
	}
	others := "package main\n\nimport (\n"
	for _, folder := range modules[2:] { // the first two are the library, and a program
		others += fmt.Sprintf("\t_ %q\n", library+"/"+folder)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(user, "main.go"), program[1], 0o644),
		os.WriteFile(filepath.Join(user, "others.go"), []byte(others+")\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mod", "init", "example.com/reports"}, {"mod", "tidy"}, {"vet", "."}} {
		run(t, user, m.env(), append([]string{"go"}, args...)...)
	}
	if mod, err := os.ReadFile(filepath.Join(user, "go.mod")); err != nil || strings.Contains(string(mod), "replace") {
		t.Errorf("it needs more than versions: %s, %v", mod, err)
	}
}

// run runs a program in the folder and returns what it prints.
func run(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
