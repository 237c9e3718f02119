// Package guarantees has the rules that test what package elect promises: the guarantees G1
// to G10, and the contract of [elect.Election.Run].
//
// [elect.Election.Run]: https://pkg.go.dev/github.com/succession-dev/succession/elect#Election.Run
package guarantees

import "slices"

// Rules are all rules of this package, in the order of RULES.md.
var Rules = slices.Concat(
	leaderRules, tokenRules, guardRules, successionRules, herdRules, ghostRules,
	toldRules, stallRules, cleanRules, observeRules, runRules, choiceRules,
)
