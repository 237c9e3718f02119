package tree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/succession-dev/succession/internal/rig/lane"
)

// outside makes a module in a folder of its own, which needs this one, and returns the folder.
func outside(t *testing.T, path string, files map[string]string) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go .*$`).FindString(read(t, "go.mod"))
	all := map[string]string{
		"go.mod": fmt.Sprintf("module %s\n\n%s\n\nrequire %s v0.0.0\n\nreplace %[3]s => %s\n", path, version, module, root),
		"go.sum": read(t, "go.sum"),
	}
	dir := t.TempDir()
	for _, set := range []map[string]string{all, files} {
		for name, text := range set {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// The example of a driver builds as a module of its own, outside of this one, and keeps rules there.
func TestExampleOutside(t *testing.T) {
	tryExample(t, "^TestConformance$/^G[12]")
}

// It keeps all laws and guarantees there.
func TestAllOfExampleOutside(t *testing.T) {
	lane.All(t)
	tryExample(t, "^TestConformance$/^[LG]")
}

// tryExample vets a copy of the example, and runs these of its tests.
func tryExample(t *testing.T, run string) {
	names, err := filepath.Glob("backend/kit/example/*.go")
	if err != nil || len(names) == 0 {
		t.Fatal("the example has no files", err)
	}
	files := make(map[string]string)
	for _, name := range names {
		files[filepath.Base(name)] = read(t, name)
	}
	dir := outside(t, "example.org/driver", files)
	for _, args := range [][]string{
		{"vet", "./..."},
		{"test", "-run", run, "./..."},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %v: %v\n%s", args, err, out)
		}
	}
}
