package tree

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/succession-dev/succession"

// standing are the packages that whoever uses the library gets in any case: they
// import the standard library and this module only.
var standing = []string{"elect", "recipes/lock", "recipes/queue", "recipes/barrier", "recipes/group", "recipes/record", "recipes/task", "fence", "backend", "backend/coordinator", "backend/kit", "memory", "conformance", "migrate", "spread", "metrics", "metrics/health"}

// drivers are the backends, each with its client library, by the beginning of its
// import paths; local and memory need none.
var drivers = []struct {
	name   string
	client string
}{
	{name: "zookeeper", client: "github.com/go-zookeeper/zk"},
	{name: "etcd", client: "go.etcd.io/etcd"},
	{name: "consul", client: "github.com/hashicorp/consul"},
	{name: "local"},
	{name: "memory"},
}

func TestStandardLibraryOnly(t *testing.T) {
	for _, name := range standing {
		t.Run(name, func(t *testing.T) {
			for _, dep := range deps(t, name) {
				if !within(dep, module) {
					t.Errorf("%s links %s, which is outside the standard library", name, dep)
				}
			}
		})
	}
}

// Whoever imports one backend links no other, and no other's client library.
func TestBackendsStandAlone(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			links := deps(t, d.name)
			for _, dep := range links {
				if within(dep, module) && !within(dep, module+"/"+d.name) &&
					!within(dep, module+"/backend") && !within(dep, module+"/internal") {
					t.Errorf("%s links %s; of this module it may link backend and internal packages", d.name, dep)
				}
				for _, other := range drivers {
					if other.name != d.name && other.client != "" && within(dep, other.client) {
						t.Errorf("%s links %s, which belongs to %s", d.name, dep, other.name)
					}
				}
				if within(dep, module+"/internal/rig") {
					t.Errorf("%s links %s, which is for tests", d.name, dep)
				}
			}
			ownClient := func(dep string) bool { return within(dep, d.client) }
			if d.client != "" && !slices.ContainsFunc(links, ownClient) {
				t.Errorf("%s does not link %s; correct the table, which keeps that from the others", d.name, d.client)
			}
		})
	}
}

// Elections know no coordinator.
func TestElectionsLinkNoBackend(t *testing.T) {
	for _, name := range []string{"elect", "recipes/lock", "recipes/queue", "recipes/barrier", "recipes/group", "recipes/record", "recipes/task", "backend", "backend/coordinator", "backend/kit", "conformance", "migrate", "spread", "metrics", "metrics/health"} {
		for _, dep := range deps(t, name) {
			for _, d := range drivers {
				if within(dep, module+"/"+d.name) {
					t.Errorf("%s links %s", name, dep)
				}
			}
		}
	}
}

// The ground that products stand on knows nothing of what stands on it, nor of tests.
func TestGround(t *testing.T) {
	rigs := module + "/internal/rig"
	above := []string{rigs, "testing"}
	for _, product := range []string{"elect", "migrate", "spread", "recipes", "conformance", "metrics", "fence"} {
		above = append(above, module+"/"+product)
	}
	for _, d := range drivers {
		above = append(above, module+"/"+d.name)
	}
	found := 0
	for _, line := range list(t, "-f", `{{.ImportPath}} {{join .Deps " "}}`, "./internal/...", "./backend/kit/...") {
		links := strings.Fields(line)
		if within(links[0], rigs) {
			continue
		}
		found++
		for _, dep := range links {
			if slices.ContainsFunc(above, func(root string) bool { return within(dep, root) }) {
				t.Errorf("%s links %s", links[0], dep)
			}
		}
	}
	if found == 0 {
		t.Error("there is no package that products stand on")
	}
}

// Each module names in its own go.mod and go.sum all that it and its tests link: ./test builds with the versions of one
// workspace, where a line that is missing does not show.
func TestModulesAreWhole(t *testing.T) {
	later := []string{"deploy", "adapters/controllerruntime", "bench/clientgo"} // link hundreds of packages of others; ./test all builds them
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		dir := filepath.Dir(path)
		switch {
		case err != nil:
			return err
		case path == "internal/build/servers" || path == ".git":
			return fs.SkipDir
		case d.Name() != "go.mod" || slices.Contains(later, dir):
			return nil
		}
		found++
		t.Run(dir, func(t *testing.T) { list(t, "-C", dir, "-deps", "-test", "./...") })
		return nil
	})
	if err != nil || found < 10 {
		t.Fatalf("%d modules were found: %v", found, err)
	}
}

// What docs/deploying.md says to copy imports nothing that only this module may.
func TestExamplesCanBeCopied(t *testing.T) {
	const form = `{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`
	for _, line := range list(t, "-f", form, "./examples/service", "./examples/cron", "./examples/failover") {
		for _, path := range strings.Fields(line)[1:] {
			if within(path, module) && strings.Contains(path, "/internal") {
				t.Errorf("%s imports %s", strings.Fields(line)[0], path)
			}
		}
	}
}

// deps returns the import paths that the package links, without the standard
// library. It fails the test where there is no such package.
func deps(t *testing.T, name string) []string {
	t.Helper()
	paths := list(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./"+name)
	if len(paths) == 0 {
		t.Fatalf("go list names no package for %s, not even itself", name)
	}
	return paths
}

// list returns the lines that go list prints.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &complaint)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}

// within reports whether path is root or lies below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

// The page of each package that others may import, on pkg.go.dev, begins with an example.
func TestEachPackageHasAnExample(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case strings.HasPrefix(d.Name(), ".") && dir != "." || slices.Contains([]string{"internal", "testdata", "examples", "cmd", "bench", "deploy"}, d.Name()):
			return fs.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		exports, example := false, false
		for _, file := range files {
			text := read(t, file)
			if strings.HasSuffix(file, "_test.go") {
				example = example || strings.Contains(text, "\nfunc Example")
				continue
			}
			exports = exports || regexp.MustCompile(`(?m)^(func|type) (\([^)]*\) )?[A-Z]`).MatchString(text)
		}
		if exports {
			found++
			if !example && dir != "backend/kit/example" && dir != "recipes" { // the one is an example, and those below the other have some
				t.Errorf("%s has no example", dir)
			}
		}
		return nil
	})
	if err != nil || found < 20 {
		t.Errorf("found %d packages: %v", found, err)
	}
}
