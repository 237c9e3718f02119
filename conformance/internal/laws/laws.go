// Package laws has the rules that test the contract of package backend: the laws L1 to L10,
// pins, and records. Each has a file.
package laws

import "slices"

// Rules are all rules of this package, in the order of RULES.md.
var Rules = slices.Concat(
	joinRules, aheadRules, goneRules, placeRules, lineRules, leaveRules, sessionRules, deadlineRules,
	folderRules, valueRules, shareRules, itemRules, pinRules, recordRules,
)
