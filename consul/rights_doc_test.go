package consul_test

import (
	"os"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/consul"
)

// The page shows the policies as they are printed.
func TestRightsOnThePage(t *testing.T) {
	u, err := backend.ParseURL("consul:///app")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/consul.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "```hcl\n" + consul.Rights(u, "jobs") + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/consul.md lacks\n%s", want)
	}
}
