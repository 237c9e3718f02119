package migrate

import (
	"strings"
	"testing"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/migrate"
)

// What others have chosen does not move the cursor.
func TestControlCharacters(t *testing.T) {
	const evil, shown = "web\x1b[2J\x07\t\x7f\u009b1", `web\u001b[2J\u0007\u0009\u007f\u009b1`
	var out strings.Builder
	candidates := []migrate.Candidate{{ID: evil, Key: evil}}
	if err := printStatus(&out, ui.AsText, "would "+evil, migrate.Status{OnFrom: candidates, Blocks: []string{evil}, Next: evil}, nil); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), shown); n != 5 || strings.Contains(out.String(), evil) {
		t.Errorf("%d of 5 are escaped in %q", n, out.String())
	}
}
