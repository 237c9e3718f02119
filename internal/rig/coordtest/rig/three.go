package rig

import (
	"flag"
	"slices"

	"github.com/succession-dev/succession/conformance"
)

var allRules = flag.Bool("all-rules", false, "run every rule of the suite on three servers, too")

// Three returns the IDs of the rules that are run on three servers, beside all of them on
// one: those that only a cluster can break, and those about what a client reads elsewhere
// than another has written, such as an operator's wish and pause. The others are about what
// a client makes of its answers, and about a coordinator that is away as a whole. With
// -all-rules it returns all.
func Three() (ids []string) {
	for _, r := range conformance.Rules() {
		elsewhere := slices.Contains([]string{"L2", "L3", "G1", "G2"}, r.Group()) && !r.Alone() ||
			slices.Contains([]string{"Choice.wish", "Choice.pause", "Records.churn", "Records.fresh", "Value.fresh"}, r.ID)
		if *allRules || elsewhere || slices.Contains(r.Needs, conformance.Cluster) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}
