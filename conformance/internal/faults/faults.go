// Package faults has the rules of the group Fault: a table of what can happen to a
// coordinator and its clients (table.go, cluster.go), and one story that all rows have in
// common (story.go).
package faults

import "github.com/succession-dev/succession/conformance/internal/engine"

// toldOfAll is the rest of the text of all rules.
const toldOfAll = " Five candidates lead in turn before that and after it, and the history is judged."

// Rules are all rows of the table, as rules.
var Rules = rules()

func rules() (out []engine.Rule) {
	for _, table := range [][]disturbance{clientFaults, operatorFaults, processFaults, coordinatorFaults, clusterFaults} {
		for _, d := range table {
			out = append(out, engine.Rule{ID: "Fault." + d.id, Title: d.title, Text: d.text + toldOfAll, Needs: d.needs, Check: tells(d)})
		}
	}
	return out
}
