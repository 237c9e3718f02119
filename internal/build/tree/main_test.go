// Package tree tests what no package has alone: who imports whom, what pages name, and the README.
package tree

import (
	"os"
	"testing"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil { // pages and packages are named from the root
		panic(err)
	}
	coordtest.Main(m, 8)
}
