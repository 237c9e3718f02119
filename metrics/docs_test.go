package metrics_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/metrics"
)

// docs/metrics.md and the package comment name each series, and the page each end of a term.
func TestDocsNameEverySeries(t *testing.T) {
	read := func(file string) string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page, doc := read("../docs/metrics.md"), read("doc.go")
	m := metrics.New(nil)
	m.Trace(trace.Event{Election: "reports", Kind: trace.SessionOpened})
	for _, f := range m.Gather() {
		name := f.Name
		if own := slices.DeleteFunc(f.Labels, func(l string) bool { return l == "election" }); len(own) > 0 {
			name += "{" + strings.Join(own, ",") + "}"
		}
		if !strings.Contains(page, "\n| `"+name+"` | "+f.Kind.String()+" |") {
			t.Errorf("docs/metrics.md has no row for the %v %s", f.Kind, name)
		}
		if !strings.Contains(doc, "\n//\t"+name+" ") {
			t.Errorf("the package comment does not name %s", name)
		}
		if f.Name != "succession_terms_total" {
			continue
		}
		for _, s := range f.Series {
			if end := s.Labels[1]; !strings.Contains(page, "\n| `"+end+"` | ") {
				t.Errorf("docs/metrics.md has no row for the end %s", end)
			}
		}
	}
}
