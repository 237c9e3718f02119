//go:build linux

package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const docs = "../../docs/"

// docsSection returns what stands in the file from the heading that begins so to
// the next heading.
func docsSection(t *testing.T, file, heading string) string {
	t.Helper()
	b, err := os.ReadFile(docs + file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\n"+heading)
	if !ok {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	section, _, _ := strings.Cut(rest, "\n#")
	return section
}

var (
	tableRow = regexp.MustCompile("(?m)^\\| (`[^|]*`) +\\|")
	quoted   = regexp.MustCompile("`([^`]*)`")
	knownAre = regexp.MustCompile(`known are (.*)\n`)
)

// firstColumn returns what stands in backquotes in the first column of the tables.
func firstColumn(section string) []string {
	var words []string
	for _, row := range tableRow.FindAllStringSubmatch(section, -1) {
		for _, word := range quoted.FindAllStringSubmatch(row[1], -1) {
			words = append(words, word[1])
		}
	}
	slices.Sort(words)
	return words
}

// The parameters that are documented are those that the drivers know.
func TestDocsNameEveryParameter(t *testing.T) {
	for _, c := range coordinators {
		_, _, stderr := here("--url", c.scheme+"://127.0.0.1/app?no-such-parameter=1", "leader", "reports")
		known := knownAre.FindStringSubmatch(stderr)
		if known == nil {
			t.Fatalf("standard error %q does not list the parameters", stderr)
		}
		got := firstColumn(docsSection(t, "choosing.md", "### `"+c.scheme+"://"))
		if want := strings.Split(known[1], ", "); !slices.Equal(got, want) {
			t.Errorf("choosing.md documents these parameters of %s:\n%q; the driver knows\n%q", c.scheme, got, want)
		}
	}
	_, _, stderr := here("--url", "local:x?no-such-parameter=1", "leader", "reports")
	if !strings.Contains(stderr, "there are none") || !strings.Contains(docsSection(t, "choosing.md", "### `local:"), "There are no parameters.") {
		t.Errorf("choosing.md says that local: has no parameters; the driver says %s", stderr)
	}
}

// Every file that the pages refer to is there.
func TestDocsLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for _, file := range []string{"choosing.md", "command.md", "migration.md"} {
		b, err := os.ReadFile(docs + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if _, err := os.Stat(docs + m[1]); err != nil {
				t.Errorf("%s refers to %s: %v", file, m[1], err)
			}
		}
	}
}

// Every flag of every command is in command.md.
func TestDocsNameEveryFlag(t *testing.T) {
	b, err := os.ReadFile(docs + "command.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range commands(newRoot()) {
		if cmd.Name() != "version" && !strings.Contains(string(b), cmd.Name()) {
			t.Errorf("command.md does not name %s", cmd.CommandPath())
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+ `).FindAllString(cmd.LocalFlags().FlagUsages(), -1) {
			if flag = strings.TrimSpace(flag); !strings.Contains(string(b), flag) {
				t.Errorf("command.md does not name %s of %s", flag, cmd.CommandPath())
			}
		}
	}
}
