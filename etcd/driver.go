package etcd

import (
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/security"
)

// driver is the scheme of URLs, and the name of this driver in errors.
const driver kit.Scheme = "etcd"

const defaultPort = "2379" // --listen-client-urls

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:  string(driver),
		Open:    kit.Opener(Open),
		Title:   "etcd",
		Example: "etcd://h1:2379,h2:2379/app",
		About:   "an etcd cluster",
		Port:    defaultPort,
		TLS:     security.Asked,
		Probe: coordinator.Probe{
			Ask:     "GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
			Answers: []string{`"etcdserver"`},
		},
		Rights:   Rights,
		Operator: newOperator,
		// It looks for leases that are over twice a second (etcd, server/lease/lessor.go).
		Slack: func(time.Duration) time.Duration { return time.Second },
	})
}
