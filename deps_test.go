package succession_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/succession-dev/succession"

// standing are the packages that whoever uses the library gets in any case: they
// import the standard library and this module only.
var standing = []struct {
	name    string
	planned bool // may not be there yet
}{
	{name: "elect"},
	{name: "backend"},
	{name: "memory"},
	{name: "conformance"},
	{name: "migrate", planned: true},
	{name: "lock", planned: true},
	{name: "queue", planned: true},
	{name: "barrier", planned: true},
	{name: "group", planned: true},
}

// drivers are the backends, each with its client library, by the beginning of its
// import paths; memory needs none.
var drivers = []struct {
	name    string
	client  string
	planned bool // may not be there yet
}{
	{name: "zookeeper", client: "github.com/go-zookeeper/zk"},
	{name: "etcd", client: "go.etcd.io/etcd", planned: true},
	{name: "consul", client: "github.com/hashicorp/consul", planned: true},
	{name: "local", client: "github.com/fsnotify/fsnotify"},
	{name: "memory"},
}

func TestStandardLibraryOnly(t *testing.T) {
	for _, p := range standing {
		t.Run(p.name, func(t *testing.T) {
			if p.planned && !there(p.name) {
				return
			}
			for _, dep := range deps(t, p.name) {
				if !within(dep, module) {
					t.Errorf("%s links %s, which is outside the standard library", p.name, dep)
				}
			}
		})
	}
}

// Whoever imports one backend links no other, and no other's client library.
func TestBackendsStandAlone(t *testing.T) {
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			if d.planned && !there(d.name) {
				return
			}
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
				if within(dep, module+"/internal/coordtest") {
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
	for _, name := range []string{"elect", "backend", "conformance"} {
		for _, dep := range deps(t, name) {
			for _, d := range drivers {
				if within(dep, module+"/"+d.name) {
					t.Errorf("%s links %s", name, dep)
				}
			}
		}
	}
}

// there reports whether the folder holds a package.
func there(name string) bool {
	files, err := filepath.Glob(filepath.Join(name, "*.go"))
	return err == nil && len(files) > 0
}

// deps returns the import paths that the package links, without the standard
// library. It fails the test where there is no such package.
func deps(t *testing.T, name string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./"+name)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &complaint)
	}
	paths := strings.Fields(string(out))
	if len(paths) == 0 {
		t.Fatalf("go list names no package for %s, not even itself", name)
	}
	return paths
}

// within reports whether path is root or lies below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
