package tree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The example of a driver builds as a module of its own, outside of this one, and keeps the rules there.
func TestExampleOutside(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go .*$`).FindString(read(t, "go.mod"))
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", fmt.Sprintf("module example.org/driver\n\n%s\n\nrequire %s v0.0.0\n\nreplace %[2]s => %s\n", version, module, root))
	files, err := filepath.Glob("backend/kit/example/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("the example has no files", err)
	}
	for _, file := range files {
		write(filepath.Base(file), read(t, file))
	}
	for _, args := range [][]string{
		{"vet", "./..."},
		{"test", "-run", "^TestConformance$/^G[12]", "./..."},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %v: %v\n%s", args, err, out)
		}
	}
}
