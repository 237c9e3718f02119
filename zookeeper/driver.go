package zookeeper

import (
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/security"
)

// driver is the scheme of URLs, and what errors call this driver.
const driver kit.Scheme = "zookeeper"

const defaultPort = "2181" // clientPort in zoo_sample.cfg

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:  string(driver),
		Open:    kit.Opener(Open),
		Title:   "ZooKeeper",
		Example: "zookeeper://h1:2181,h2:2181/app",
		About:   "a ZooKeeper ensemble",
		Port:    defaultPort,
		TLS:     security.Asked,
		Probe: coordinator.Probe{
			Ask:     "srvr", // servers answer this four-letter command, even if only to say that they may not
			Answers: []string{"ZooKeeper", "Zookeeper", "srvr is not executed"},
		},
		Rights:   Rights,
		Operator: newOperator,
		// A server ends sessions at whole ticks, and reports to its leader at half ones; a
		// session is two ticks at the least.
		Slack: func(ttl time.Duration) time.Duration { return ttl + ttl/4 },
	})
}
