package conformance_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/succession-dev/succession/conformance"
)

// The page on how all is tested says how many rules and flaws there are.
func TestPageCounts(t *testing.T) {
	page, err := os.ReadFile("../docs/tested.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("| %d rules,", len(conformance.Rules())), fmt.Sprintf("| %d flaws |", len(allFlaws()))} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/tested.md does not say %q", want)
		}
	}
}
