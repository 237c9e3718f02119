// Package recipes has the rules that test the recipes which stand on elections: locks, queues,
// barriers, groups and tasks.
package recipes

import "slices"

// Rules are all rules of this package, in the order of RULES.md.
var Rules = slices.Concat(lockRules, queueRules, barrierRules, groupRules, taskRules, poolRules)
