package ui

import "testing"

// What shows nothing is escaped, so that no id looks like another one; letters, signs and spaces are not.
func TestHidden(t *testing.T) {
	for _, r := range "\u202e\u200b\u00ad\u2028\ufeff\u034f\u115f\u1160\u17b4\u180b\u180e\u3164\uffa0\ufe0e\U000e0101\U000e0020\x1b\u0085" {
		if !Hidden(r) {
			t.Errorf("%U is not seen", r)
		}
	}
	for _, r := range "a é\u0301ß漢한\u1112\u0e33€→🙂\u00a0" {
		if Hidden(r) {
			t.Errorf("%U is escaped", r)
		}
	}
}
