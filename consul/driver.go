package consul

import (
	"os"
	"strconv"
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/internal/security"
)

// driver is the scheme of URLs, and the name of this driver in errors.
const driver kit.Scheme = "consul"

const defaultPort = "8500" // ports.http

func init() {
	coordinator.Register(coordinator.Driver{
		Scheme:  string(driver),
		Open:    kit.Opener(Open),
		Title:   "Consul",
		Example: "consul://127.0.0.1:8500/app",
		About:   "a Consul cluster, by the agent on this machine",
		Port:    defaultPort,
		TLS: func(u *coordinator.URL) bool {
			on, _ := strconv.ParseBool(os.Getenv("CONSUL_HTTP_SSL")) // as Consul's client reads it
			return on || security.Asked(u)
		},
		Probe: coordinator.Probe{
			Ask: "GET /v1/status/leader HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
			Answers: []string{
				"X-Consul-", "Access-Control-Expose-Headers: x-consul-",
				// An agent sends only this to an address that has too many connections
				// (hashicorp/go-connlimit, HTTPConnStateFuncWithDefault429Handler).
				"Your IP is issuing too many concurrent connections",
			},
		},
		Rights:   Rights,
		Operator: newOperator,
		Slack:    func(ttl time.Duration) time.Duration { return ttl + ttl/4 }, // it ends a session after twice its time
		Unfit: map[string]string{
			"G9.campaigns": "it would take a connection that is kept for the next request for a goroutine that was left",
		},
	})
}
