package kubernetes

import (
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
)

// driver is the scheme of URLs, and the name of this driver in errors.
const driver kit.Scheme = "kubernetes"

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:   string(driver),
		Open:     kit.Opener(Open),
		Title:    "Kubernetes",
		Example:  "kubernetes://default/app",
		About:    "Leases of a Kubernetes namespace",
		Rights:   rights,
		Operator: newOperator,
		// Whoever waits behind a session watches it. If nobody does, two sessions look at all others about once in a session time.
		Slack: func(ttl time.Duration) time.Duration { return ttl * 5 / 4 },
	})
}
