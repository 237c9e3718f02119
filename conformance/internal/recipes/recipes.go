// Package recipes has the rules that test the recipes which stand on elections: locks, queues,
// barriers, groups, values and tasks.
package recipes

import "slices"

// Rules are all rules of this package, in the order of RULES.md.
var Rules = slices.Concat(lockRules, slotRules, queueRules, barrierRules, insideRules, groupRules, assignRules, valueRules, taskRules, poolRules)
