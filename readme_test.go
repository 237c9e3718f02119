package succession_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func TestMain(m *testing.M) { coordtest.Main(m) }

// The program of the README runs as it stands on every coordinator, with the one
// function that it leaves to the reader; one string says on which.
func TestReadmeProgram(t *testing.T) {
	program := readmeProgram(t)
	urls := map[string]func(t *testing.T) string{
		"local":     func(t *testing.T) string { return "local:" + t.TempDir() },
		"zookeeper": func(t *testing.T) string { return "zookeeper://" + coordtest.SharedZooKeeper(t).Addrs()[0] + "/readme" },
		"etcd":      func(t *testing.T) string { return "etcd://" + coordtest.NewEtcd(t, nil).Addrs()[0] + "/readme" },
		"consul":    func(t *testing.T) string { return "consul://" + coordtest.NewConsul(t, nil).Addrs()[0] + "/readme" },
	}
	for scheme, url := range urls {
		t.Run(scheme, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), "SUCCESSION_URL="+url(t))
			out, err := cmd.CombinedOutput()
			if err != nil || !regexp.MustCompile(`leading with token \d+\n.*<nil>\n$`).Match(out) {
				t.Errorf("it ended with %v and printed\n%s", err, out)
			}
		})
	}
}

// readmeProgram builds the program of the README with all drivers.
func readmeProgram(t *testing.T) string {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d whole programs, want 1", len(blocks))
	}
	files := map[string]string{
		"main.go": blocks[0][1],
		"reader.go": `package main

import (
	"context"
	"fmt"

	_ "github.com/succession-dev/succession/consul"
	_ "github.com/succession-dev/succession/etcd"
	_ "github.com/succession-dev/succession/local"
)

func sendReports(_ context.Context, token uint64) error {
	fmt.Println("leading with token", token)
	return nil
}
`}
	// An overlay puts the program into this module without writing to the tree.
	dir := t.TempDir()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace := make(map[string]string)
	for name, text := range files {
		written := filepath.Join(dir, name)
		if err := os.WriteFile(written, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, "internal", "readme", name)] = written
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	out, err := exec.Command("go", "build", "-overlay", overlayFile, "-o", program, "./internal/readme").CombinedOutput()
	if err != nil {
		t.Fatalf("the program of the README does not build: %v\n%s", err, out)
	}
	return program
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
