//go:build linux

package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/run"
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

var update = flag.Bool("update", false, "write docs/reference.md")

// The reference is what --help says.
func TestReference(t *testing.T) {
	const file = docs + "reference.md"
	var b strings.Builder
	b.WriteString(`# Reference of the command

What ` + "`succession COMMAND --help`" + ` prints; it is made from that (` + "`go generate -C cmd/succession`" + `). [command.md](command.md) says what
people do with it, and [run.md](run.md) what becomes of a program that it runs. All commands have ` + "`--url`" + ` and ` + "`--timeout`" + `.
`)
	root := newRoot()
	for _, group := range append(root.Groups(), &cobra.Group{Title: "Others:"}) {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(group.Title, ":"))
		for _, cmd := range commands(root) {
			top := cmd
			for top.Parent() != root {
				top = top.Parent()
			}
			if top.GroupID == group.ID {
				reference(&b, cmd)
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Error("docs/reference.md is not what --help says; run go generate in cmd/succession")
	}
}

// reference writes what is said of a command.
func reference(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n### %s\n\n```text\n%s\n\nUsage:\n  %s\n", strings.TrimPrefix(cmd.CommandPath(), "succession "), cmp.Or(strings.TrimSpace(cmd.Long), cmd.Short), cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n%s\n", strings.Trim(cmd.Example, "\n"))
	}
	flags := cmd.NonInheritedFlags()
	if usages := flags.FlagUsages(); usages != "" {
		fmt.Fprintf(b, "\nFlags:\n%s", usages)
	}
	b.WriteString("```\n")
}

// indented returns the page with what stands between fences indented, as other code is.
func indented(page string) string {
	lines, code := strings.Split(page, "\n"), false
	for i, line := range lines {
		if strings.HasPrefix(line, "```") {
			code = !code
		} else if code && !strings.HasPrefix(line, "    ") {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// The pages name no command and no flag that there is not.
func TestDocsNameWhatIsThere(t *testing.T) {
	named := make(map[string]*cobra.Command)
	root := newRoot()
	for _, cmd := range append(commands(root), root, run.Guard()) {
		named["succession "+strings.TrimPrefix(cmd.CommandPath(), "succession ")] = cmd
	}
	pages, err := filepath.Glob(docs + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile("(?m)(?:^    (?:\\$ )?|`|&& )(succession(?: --url \\S+)?(?: [a-z]+)+)\\b([^`\n]*)")
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllStringSubmatch(indented(string(text)), -1) {
			path := regexp.MustCompile(` --url \S+`).ReplaceAllString(m[1], "")
			// The longest beginning that is a command; what follows are its arguments.
			for path != "succession" && named[path] == nil {
				path = path[:strings.LastIndex(path, " ")]
			}
			if path == "succession" {
				t.Errorf("%s: there is no command %q", filepath.Base(page), m[1])
				continue
			}
			seen++
			own, _, _ := strings.Cut(m[2], " -- ") // the flags of what it runs are not ours
			for _, f := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(own, -1) {
				if f != "--help" && named[path].Flag(strings.TrimPrefix(f, "--")) == nil {
					t.Errorf("%s: %s: %s has no flag %s", filepath.Base(page), strings.TrimSpace(m[0]), path, f)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d calls of the command were found; has the form of the pages changed?", seen)
	}
}
