package spread

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
)

// A Cluster is one coordinator of the list.
type Cluster struct {
	// Name tells the cluster from the others, for ever: the coordinator keeps it. It is one segment
	// of a name; see [backend.CheckName].
	Name string `json:"name"`
	// URL is where the cluster is now. It may change, such as when a server is added.
	URL string `json:"url"`
}

// A Source returns the list of clusters. It is asked once when the first election is needed, and
// again whenever an election turns out to live on a cluster that was not in the list. It may block.
type Source func(ctx context.Context) ([]Cluster, error)

// List is the source of a list that does not change.
func List(clusters ...Cluster) Source {
	return func(context.Context) ([]Cluster, error) { return clusters, nil }
}

// File is the source of a list in a file, as JSON:
//
//	[
//		{"name": "east", "url": "etcd://e1:2379,e2:2379,e3:2379/app"},
//		{"name": "west", "url": "zookeeper://w1:2181,w2:2181,w3:2181/app"}
//	]
func File(path string) Source {
	return func(context.Context) ([]Cluster, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		clusters, err := parseList(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return clusters, nil
	}
}

func parseList(text []byte) (clusters []Cluster, err error) {
	err = json.Unmarshal(text, &clusters)
	return clusters, err
}

// checkList returns what is wrong with a list.
func checkList(clusters []Cluster) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w list of clusters: %s", backend.ErrInvalid, fmt.Sprintf(format, args...))
	}
	if len(clusters) == 0 {
		return bad("it is empty")
	}
	names, urls := make(map[string]bool), make(map[string]string)
	for _, c := range clusters {
		if err := backend.CheckName(c.Name); err != nil {
			return bad("%v", err)
		}
		u, err := coordinator.ParseURL(c.URL)
		switch {
		case strings.Contains(c.Name, "/"):
			return bad("the name %q has a slash", c.Name)
		case names[c.Name]:
			return bad("the name %q is there twice", c.Name)
		case err != nil:
			return bad("%s: %v", c.Name, err)
		case u.Scheme == Scheme || u.Scheme == "migrate":
			return bad("%s: %s is not one coordinator", c.Name, u)
		case urls[c.URL] != "":
			return bad("%s and %s have the same URL", urls[c.URL], c.Name)
		}
		names[c.Name], urls[c.URL] = true, c.Name
	}
	return nil
}

// newest returns the list as it is now.
func (b *Backend) newest(ctx context.Context) ([]Cluster, error) {
	clusters, err := b.source(ctx)
	if err != nil {
		return nil, fmt.Errorf("the list of clusters cannot be read: %w", err)
	}
	return clusters, checkList(clusters)
}

// read reads the list.
func (b *Backend) read(ctx context.Context) error {
	clusters, err := b.newest(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return backend.ErrClosed
	}
	b.listed = b.listed[:0:0]
	for _, c := range clusters {
		b.listed = append(b.listed, c.Name)
		if b.clusters[c.Name] == nil {
			b.clusters[c.Name] = b.newCluster(c)
		}
	}
	slices.Sort(b.listed)
	return nil
}

// Clusters returns the clusters of the list as it is now, for tools that look at each by itself. It asks no cluster.
func (b *Backend) Clusters(ctx context.Context) ([]Cluster, error) {
	clusters, err := b.newest(ctx)
	return clusters, wrap("list", "", err)
}

// list returns the names of the list, and reads it if that has not been done.
func (b *Backend) list(ctx context.Context) ([]string, error) {
	b.mu.Lock()
	listed := b.listed
	b.mu.Unlock()
	if listed != nil {
		return listed, nil
	}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.listed, nil
}

// named returns the cluster with that name. If it is not known, named reads the list again.
func (b *Backend) named(ctx context.Context, name string) (*cluster, error) {
	for again := false; ; again = true {
		b.mu.Lock()
		c := b.clusters[name]
		b.mu.Unlock()
		if c != nil {
			return c, nil
		}
		if again {
			return nil, fmt.Errorf("%w list of clusters: %q is not there; give this process the newest list", backend.ErrInvalid, name)
		}
		if err := b.read(ctx); err != nil {
			return nil, err
		}
	}
}
