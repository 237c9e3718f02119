// Package faults has the rules of the group Fault. A table says what can happen to a
// coordinator and its clients (table.go, cluster.go), and each row runs the same scenario
// (scenario.go).
package faults

import "github.com/succession-dev/succession/conformance/internal/engine"

// sameForAll is the last sentence in the text of each rule.
const sameForAll = " Five candidates lead in turn before that and after it, and the history is judged."

// Rules has a rule for each row of the table.
var Rules = rules()

func rules() (out []engine.Rule) {
	for _, table := range [][]row{clientFaults, operatorFaults, processFaults, coordinatorFaults, clusterFaults} {
		for _, d := range table {
			out = append(out, engine.Rule{ID: "Fault." + d.id, Title: d.title, Text: d.text + sameForAll, Needs: d.needs, Check: check(d)})
		}
	}
	return out
}
