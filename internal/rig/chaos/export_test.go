//go:build linux

package chaos

import "time"

// WithCut returns the options of a run in which the leader of the first election is cut
// off, and nothing else happens.
func (o Options) WithCut(at, length time.Duration) Options {
	o.Steps = []step{{At: at, For: length, Kind: "cut", Leader: true}}
	return o
}

// With returns the options of a run in which one fault occurs, which has no length.
func (o Options) With(kind string, at time.Duration) Options {
	o.Steps = []step{{At: at, Kind: kind}}
	return o
}
