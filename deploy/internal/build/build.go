// Package build builds programs of the main module so that they need nothing but the kernel.
package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Flags are those of go build, the same as in the Dockerfile.
var Flags = []string{"-trimpath", "-ldflags=-s -w"}

// Program builds the program in a folder of this repository for Linux, in the module that the folder is of, and writes it to
// the file, with more flags of go build. goarch may be empty, for that of this machine. It blocks for as long as go build does.
func Program(file, folder, goarch string, more ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	// The command says its version by the commit, whatever GOFLAGS says here.
	args := append([]string{"build", "-C", filepath.Join(root, folder), "-o", file, "-buildvcs=auto"}, Flags...)
	cmd := exec.Command("go", append(append(args, more...), ".")...)
	// In the versions that the program's own module has, whatever workspace this runs in.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOWORK=")
	if goarch != "" {
		cmd.Env = append(cmd.Env, "GOARCH="+goarch)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w", folder, err)
	}
	return nil
}

// Root returns the folder of the main module.
func Root() (string, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/succession-dev/succession")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list -m: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// A Commit is what is built: the commit that is checked out.
type Commit struct {
	ID   string
	Time time.Time
}

// Checked returns the commit that is checked out. What is made of it has its time, and not that of the making, so that whoever makes
// it again can compare the two.
func Checked() (Commit, error) {
	root, err := Root()
	if err != nil {
		return Commit{}, err
	}
	cmd := exec.Command("git", "-C", root, "log", "-1", "--format=%H %cI")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return Commit{}, fmt.Errorf("git log: %w", err)
	}
	id, when, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	at, err := time.Parse(time.RFC3339, when)
	return Commit{id, at.UTC()}, err
}
