package postgres

import (
	"time"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
)

// driver is the scheme of URLs, and the name of this driver in errors.
const driver kit.Scheme = "postgres"

const defaultPort = "5432"

func init() {
	d := coordinator.Driver{
		Scheme:   string(driver),
		Open:     kit.Opener(Open),
		Title:    "PostgreSQL",
		Example:  "postgres://h1:5432,h2:5432/app",
		About:    "a PostgreSQL database",
		Port:     defaultPort,
		Rights:   rights,
		Setup:    setup,
		Operator: newOperator,
		// Others see a number when they send their own heartbeat, and wait for a twentieth more
		// than a session time. Sessions far from the head send few, but some of the sixteen that
		// observe a session send theirs within any quarter of a session time.
		Slack: func(ttl time.Duration) time.Duration { return ttl/4 + ttl/20 + ttl/10 },
		Probe: coordinator.Probe{
			// A request for a protocol that no server speaks, which each refuses with an error of
			// PostgreSQL's form.
			Ask:     "\x00\x00\x00\x08\x00\x01\x00\x00",
			Answers: []string{"SFATAL", "FATAL", "unsupported frontend protocol"},
		},
	}
	coordinator.Register(d)
	d.Scheme, d.Example, d.About = "postgresql", "", "" // as PostgreSQL's own clients have it, too
	coordinator.Register(d)
}
