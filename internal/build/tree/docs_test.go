package tree

import (
	"go/ast"
	"go/parser"
	"go/token"
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

// What a page calls by a package's name, as in `elect.Options.Margin`, is exported there. A field of `Options.Margin` and a
// method of `term.Check()` are those of some package, and a rule is one of the suite's.
func TestNamedInCode(t *testing.T) {
	exported := exports(t)
	members := make(map[string]bool) // fields of Options, and methods, of any package
	for _, names := range exported {
		for name := range names {
			if of, member, ok := strings.Cut(name, "."); ok {
				members["."+member] = true
				members[of+"."+member] = true
			}
		}
	}
	for _, name := range []string{"prometheus", "gocron"} { // which are also packages of others
		delete(exported, name)
	}
	groups := make(map[string]map[string]bool) // of rules, with their names
	rules := regexp.MustCompile(`(?m)^\| ([A-Z][A-Za-z0-9]*)\.([a-z-]+) \|`).FindAllStringSubmatch(read(t, "conformance/RULES.md"), -1)
	for _, r := range rules {
		if groups[r[1]] == nil {
			groups[r[1]] = make(map[string]bool)
		}
		groups[r[1]][r[2]] = true
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block, called := regexp.MustCompile("(?ms)^```go.*?^```|^    .*?$"), regexp.MustCompile(`\b([a-z]+)\.([A-Z][A-Za-z]*)`)
	code, name := regexp.MustCompile("`[^`\n]+`"), regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*)\.([A-Za-z-]+)(?:\.([A-Za-z]+))?`)
	named := 0
	for _, page := range append(pages, "README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		for _, c := range block.FindAllString(read(t, page), -1) {
			for _, m := range called.FindAllStringSubmatch(c, -1) {
				if exported[m[1]] == nil {
					continue
				}
				named++
				if !exported[m[1]][m[2]] {
					t.Errorf("%s calls %s, which package %s does not export", page, m[0], m[1])
				}
			}
		}
		text := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, page), "")
		for _, c := range code.FindAllString(text, -1) {
			m := name.FindStringSubmatch(c[1:])
			switch {
			case m == nil:
			case exported[m[1]] != nil && ast.IsExported(m[2]):
				named++
				member := m[2]
				if m[3] != "" {
					member += "." + m[3]
				}
				if !exported[m[1]][m[2]] || !exported[m[1]][member] {
					t.Errorf("%s names %s, which package %s does not export", page, c, m[1])
				}
			case m[1] == "Options" && ast.IsExported(m[2]):
				named++
				if !members["Options."+m[2]] {
					t.Errorf("%s names %s, which no package's Options have", page, c)
				}
			case slices.Contains(handles, m[1]) && ast.IsExported(m[2]):
				named++
				if !members["."+m[2]] {
					t.Errorf("%s names %s, which nothing has", page, c)
				}
			case groups[m[1]] != nil && m[2] == strings.ToLower(m[2]):
				named++
				if !groups[m[1]][m[2]] {
					t.Errorf("%s names %s, which is no rule", page, c)
				}
			}
		}
	}
	if named < 100 {
		t.Errorf("only %d names were found; has the form of the pages changed?", named)
	}
}

// handles are what pages call the things on which they call methods.
var handles = []string{"e", "term", "held", "op"}

// The parameters of URLs on pages are ones that a driver asks for.
func TestNamedParameters(t *testing.T) {
	asked := map[string]bool{"parameter": true} // which stands for any
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text := read(t, path)
		for _, m := range regexp.MustCompile(`\.(?:Text|Texts|Bool|Duration)\("([a-z-]+)"`).FindAllStringSubmatch(text, -1) {
			asked[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`SecretOf\(u, "([a-z-]+)"`).FindAllStringSubmatch(text, -1) {
			asked[m[1]+"-file"], asked[m[1]+"-env"] = true, true
		}
		if list := regexp.MustCompile(`(?s)var parameters = \[\]string\{(.*?)\}`).FindStringSubmatch(text); list != nil { // those of PostgreSQL
			for _, name := range strings.Split(list[1], ", ") {
				asked[strings.Trim(name, `"`)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	url, parameter := regexp.MustCompile("[a-z]+:(?://)?[^\\s`]*[?][^\\s`]*|`[a-z][a-z-]*=[^`\\s]*`"), regexp.MustCompile("(?:[?&]|^`)([a-z][a-z-]*)=")
	named := 0
	for _, page := range append(pages, "README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		for _, u := range url.FindAllString(read(t, page), -1) {
			for _, m := range parameter.FindAllStringSubmatch(u, -1) {
				named++
				if !asked[m[1]] {
					t.Errorf("%s has %s: no driver asks for the parameter %s", page, u, m[1])
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("only %d parameters were found; has the form of the pages changed?", named)
	}
}

// exports returns what each package that an application or a driver imports exports, by the package's name: as Name, and as
// Type.Name for methods and fields.
func exports(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := make(map[string]map[string]bool)
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "internal" || d.Name() == "testdata" || d.Name() == "examples" || d.Name() == "bench"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil || f.Name.Name == "main" {
			return err
		}
		names := all[f.Name.Name]
		if names == nil {
			names = make(map[string]bool)
			all[f.Name.Name] = names
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = typeName(d.Recv.List[0].Type) + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					case *ast.TypeSpec:
						names[s.Name.Name] = true
						var members *ast.FieldList
						switch of := s.Type.(type) {
						case *ast.StructType:
							members = of.Fields
						case *ast.InterfaceType:
							members = of.Methods
						default:
							continue
						}
						for _, f := range members.List {
							for _, n := range f.Names {
								names[s.Name.Name+"."+n.Name] = true
							}
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// typeName is the name of a method's receiver.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// Each package that others import shows how, by an example.
func TestEachHasAnExample(t *testing.T) {
	found := 0
	for _, dir := range []string{".", "postgres", "kubernetes", "metrics/prometheus", "metrics/otel", "adapters/gocron"} {
		for _, line := range list(t, "-C", dir, "-f", `{{.Name}} {{.ImportPath}} {{.Dir}} {{join .XTestGoFiles ","}},{{join .TestGoFiles ","}}`, "./...") {
			part := strings.Fields(line)
			if part[0] == "main" || strings.Contains(part[1]+"/", "/internal/") || strings.Contains(part[1], "/example") {
				continue
			}
			found++
			if !slices.ContainsFunc(strings.Split(part[3], ","), func(name string) bool {
				return name != "" && strings.Contains(read(t, filepath.Join(part[2], name)), "\nfunc Example")
			}) {
				t.Errorf("%s has no example", part[1])
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d packages were found", found)
	}
}

// What applications and drivers have to know stays small: names, methods and fields.
func TestFewNames(t *testing.T) {
	exported := exports(t)
	for name, most := range map[string]int{"elect": 80, "backend": 120} {
		n := 0
		for name := range exported[name] {
			if of, member, ok := strings.Cut(name, "."); ast.IsExported(of) && (!ok || ast.IsExported(member)) {
				n++
			}
		}
		if n > most || n < most/2 {
			t.Errorf("package %s exports %d names, methods and fields; at most %d are wanted", name, n, most)
		}
	}
}
