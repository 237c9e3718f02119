package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pageCode    = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	pageLink    = regexp.MustCompile(`\]\(([^)]+)\)`)
	pageHeading = regexp.MustCompile("(?m)^#+ +(.*)$")
	notInAnchor = regexp.MustCompile("[^a-z0-9_ -]")
)

// Whatever a page points to is there: each file, and each heading of a page.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "bench/*.md", "conformance/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no pages %s (%v)", pattern, err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		for _, l := range pageLink.FindAllStringSubmatch(pageCode.ReplaceAllString(read(t, page), ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(l[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links %s: %v", page, l[1], err)
			} else if anchor != "" && !anchors(read(t, target))[anchor] {
				t.Errorf("%s links %s: there is no such heading", page, l[1])
			}
		}
	}
	if links == 0 {
		t.Fatal("the pages link nothing; has their form changed?")
	}
}

// anchors returns what a link to a heading of the page may name, as GitHub makes it of the
// heading.
func anchors(page string) map[string]bool {
	set := make(map[string]bool)
	for _, h := range pageHeading.FindAllStringSubmatch(page, -1) {
		set[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return set
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The tests that pages name exist, and those that SECURITY.md names stand where it says, as in "etcd: TestX".
func TestNamedTests(t *testing.T) {
	where := make(map[string][]string) // folders, by test
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)\(`).FindAllSubmatch(text, -1) {
			where[string(m[1])] = append(where[string(m[1])], filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named, placed := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`), regexp.MustCompile(`([a-z/]+): ((?:(?:Test|Fuzz)[A-Z]\w*(?:, )?)+)`)
	for _, page := range append(pages, "README.md", "SECURITY.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(text), -1) {
			if len(where[name]) == 0 && name != "FuzzX" && name != "TestX" {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
		if page != "SECURITY.md" {
			continue
		}
		for _, m := range placed.FindAllStringSubmatch(string(text), -1) {
			for _, name := range named.FindAllString(m[2], -1) {
				if !slices.Contains(where[name], m[1]) {
					t.Errorf("%s names %s of %s, which is in %v", page, name, m[1], where[name])
				}
			}
		}
	}
}
