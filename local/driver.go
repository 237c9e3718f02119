package local

import (
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
)

// driver is the scheme of URLs, and what errors call this driver.
const driver kit.Scheme = "local"

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:   string(driver),
		Open:     kit.Opener(Open),
		Example:  "local:/var/lib/app",
		About:    "the kernel of this machine",
		Operator: newOperator,
	})
}
