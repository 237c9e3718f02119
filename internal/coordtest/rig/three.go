package rig

import (
	"flag"
	"slices"

	"github.com/succession-dev/succession/conformance"
)

var allRules = flag.Bool("all-rules", false, "run every rule of the suite on three servers, too")

// Three returns the IDs of the rules that are run on three servers, beside all of them on
// one: those that disturb servers, and those on which the number of servers bears, as a
// client may read elsewhere what another has written. The others are about what a client
// makes of its answers. With -all-rules it returns all.
func Three() (ids []string) {
	for _, r := range conformance.Rules() {
		if *allRules || r.Alone() || slices.Contains([]string{"L2", "L3", "G1", "G2", "G8"}, r.Group()) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}
