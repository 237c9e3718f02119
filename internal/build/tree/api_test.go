package tree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/rig/lane"
)

// What a version exports is not taken away unless CHANGELOG.md says so.
func TestAPI(t *testing.T) {
	lane.All(t)
	clone := filepath.Join(t.TempDir(), "clone")
	do := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = clone
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(args ...string) {
		t.Helper()
		if out, err := do(args...); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	change := func(file, old, new string) {
		t.Helper()
		file = filepath.Join(clone, file)
		text := read(t, file)
		if !strings.Contains(text, old) {
			t.Fatalf("%s lacks %q", file, old)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, old, new)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", "--no-tags", root, clone).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const added, file = "package fence\n\n// New is new.\nconst New = 1\n", "fence/doc.go"
	for _, c := range []struct {
		step func()
		says string
		ok   bool
	}{
		{func() {}, "there is no version yet", true},
		{func() {
			change(file, "package fence\n", added)
			must("git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qam", "a version")
			must("git", "tag", "v0.1.0")
		}, "all that v0.1.0 exports is there", true},
		{func() { change("metrics/otel/spans.go", "func Spans(", "func SpansOf(") }, "Spans: removed", false},
		{func() {
			change("metrics/otel/spans.go", "func SpansOf(", "func Spans(")
			change(file, added, "package fence\n")
		}, "New: removed", false},
		{func() { change("CHANGELOG.md", "## 0.1.0", "## 0.2.0\n\n### Removed\n\n- `fence.New`.\n\n## 0.1.0") }, "New: removed", true},
	} {
		c.step()
		out, err := do("./test", "api")
		if (err == nil) != c.ok || !strings.Contains(out, c.says) {
			t.Errorf("%v\n%s; want %q", err, out, c.says)
		}
	}
}
