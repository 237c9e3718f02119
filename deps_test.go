package succession_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/succession-dev/succession"

// standing are the packages that whoever uses the library gets in any case: they
// import the standard library and this module only.
var standing = []string{"elect", "backend", "memory", "conformance", "migrate"}

// drivers are the backends, each with its client library, by the beginning of its
// import paths; memory needs none.
var drivers = []struct {
	name   string
	client string
}{
	{name: "zookeeper", client: "github.com/go-zookeeper/zk"},
	{name: "etcd", client: "go.etcd.io/etcd"},
	{name: "consul", client: "github.com/hashicorp/consul"},
	{name: "local", client: "github.com/fsnotify/fsnotify"},
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
				if within(dep, module+"/internal/rig/coordtest") {
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
	for _, name := range []string{"elect", "backend", "conformance", "migrate"} {
		for _, dep := range deps(t, name) {
			for _, d := range drivers {
				if within(dep, module+"/"+d.name) {
					t.Errorf("%s links %s", name, dep)
				}
			}
		}
	}
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
