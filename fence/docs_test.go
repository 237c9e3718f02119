package fence_test

import (
	"os"
	"strings"
	"testing"

	"github.com/succession-dev/succession/fence"
)

// The migrations on the page are those of the package.
func TestDocsShowTheSchemas(t *testing.T) {
	page, err := os.ReadFile("../docs/fence.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []fence.Dialect{fence.SQLite, fence.PostgreSQL, fence.MySQL} {
		schema, err := fence.SQL{Dialect: dialect}.Schema()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "\n"+schema+"\n") {
			t.Errorf("docs/fence.md does not show %s", schema)
		}
	}
}
