package succession_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The program of the README builds as it stands, with the one function that it
// leaves to the reader.
func TestReadmeProgramBuilds(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d whole programs, want 1", len(blocks))
	}
	program := blocks[0][1] + "\nfunc sendReports(context.Context, uint64) error { return nil }\n"

	dir := t.TempDir()
	written := filepath.Join(dir, "main.go")
	if err := os.WriteFile(written, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	// An overlay puts the program into this module without writing to the tree.
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "internal", "readme", "main.go"): written,
	}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "build", "-overlay", overlayFile, "-o", filepath.Join(dir, "program"), "./internal/readme").CombinedOutput()
	if err != nil {
		t.Errorf("the program of the README does not build: %v\n%s", err, out)
	}
}

// Whatever the README points to is there.
func TestReadmeLinks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(string(readme), -1)
	if len(links) == 0 {
		t.Fatal("the README links nothing; has its form changed?")
	}
	for _, l := range links {
		if strings.Contains(l[1], "://") {
			continue
		}
		if _, err := os.Stat(filepath.FromSlash(l[1])); err != nil {
			t.Errorf("the README links %s: %v", l[1], err)
		}
	}
}
