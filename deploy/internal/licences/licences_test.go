package licences

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The licences of what a program links are found; a module without one is an error.
func TestOf(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-o", program, "../../release").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := Of(program, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nThe Go standard library, go", "\ngolang.org/x/mod v", "The Go Authors"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	cache := t.TempDir()
	if _, err := Of(program, cache); err == nil || !strings.Contains(err.Error(), "golang.org/x/mod") {
		t.Errorf("without the modules: %v", err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range info.Deps {
		if err := os.MkdirAll(filepath.Join(cache, dep.Path+"@"+dep.Version), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Of(program, cache); err == nil || !strings.Contains(err.Error(), "has no licence") {
		t.Errorf("with modules that are empty: %v", err)
	}
}
