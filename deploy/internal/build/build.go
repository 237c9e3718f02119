// Package build builds programs of the main module so that they need nothing but the kernel.
package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Flags are those of go build, the same as in the Dockerfile.
var Flags = []string{"-trimpath", "-ldflags=-s -w"}

// Program builds the program in a folder of this repository for Linux, in the module that the folder is of, and writes it to
// the file. goarch may be empty, for that of this machine. It blocks for as long as go build does.
func Program(file, folder, goarch string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	// The command says its version by the commit, whatever GOFLAGS says here.
	args := append([]string{"build", "-C", filepath.Join(root, folder), "-o", file, "-buildvcs=auto"}, Flags...)
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
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
