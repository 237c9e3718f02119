package spread_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/spread"
)

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", `[{"name": "east", "url": "memory:open-east"}, {"name": "west", "url": "memory:open-west"}]`)
	for _, url := range []string{
		"spread:" + good,
		"spread:?to=east=memory:open-east&to=west=memory:open-west%3Fclient=one",
	} {
		b, err := succession.Connect(t.Context(), url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		term, err := elect.New(backend.For(b, "reports"), "reports", nil).Campaign(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	for url, said := range map[string]string{
		"spread:":                     "want spread:FILE",
		"spread://host/file":          "want spread:FILE",
		"spread:/file?to=a=memory:a":  "want spread:FILE",
		"spread:?to=memory:a":         "want to=NAME=URL",
		"spread:?to=a=memory:a&at=b":  "known are to",
		"spread:?to=a=nothing:a":      "unknown scheme",
		"spread:" + folder + "/none":  "no such file",
		"spread:" + file("text", "x"): "invalid character",
		"spread:" + file("no", "[]"):  "it is empty",
		"spread:?to=west=memory:open-east&to=east=memory:open-west": "is the cluster",
	} {
		b, err := succession.Connect(t.Context(), url)
		if err == nil {
			b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%s: error %v does not say %q", url, err, said)
		}
	}
}

// The list can be had without asking a cluster, and as it is by then.
func TestClusters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clusters.json")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := spread.New(spread.File(path), &spread.Options{Open: func(url string) (backend.Backend, error) {
		t.Errorf("%s was opened", url)
		return nil, backend.ErrUnavailable
	}})
	defer b.Close()
	for _, want := range []string{"east", "west"} {
		write(`[{"name": "` + want + `", "url": "memory:` + want + `"}]`)
		if got, err := b.Clusters(t.Context()); err != nil || len(got) != 1 || got[0] != (spread.Cluster{Name: want, URL: "memory:" + want}) {
			t.Errorf("the clusters are %v, %v; want %s", got, err, want)
		}
	}
	write(`[{"name": "a", "url": "memory:a"}, {"name": "a", "url": "memory:b"}]`)
	if _, err := b.Clusters(t.Context()); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "is there twice") {
		t.Errorf("a list with a name twice: %v", err)
	}
}
