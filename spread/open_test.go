package spread_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
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
