// Package laws has the rules about what package backend demands: the laws L1 to L8, a file
// for each, and pins and records beside them.
package laws

import "slices"

// Rules are all rules of this package, in the order of RULES.md.
var Rules = slices.Concat(
	joinRules, aheadRules, goneRules, leaveRules, sessionRules, deadlineRules,
	folderRules, valueRules, pinRules, recordRules,
)
