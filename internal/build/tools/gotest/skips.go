package main

import (
	"fmt"
	"io"
	"regexp"
)

// skips counts the tests that were skipped by why they were. Of a rule of the conformance
// suite its message says it (conformance.Run).
type skips struct {
	impossible, notWired, waived, notJudged, other int
	forAll                                         int // which do not count as skipped
}

// suiteSkip is the beginning of such a message.
var suiteSkip = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: conformance: (impossible|not wired|waived): `)

// putOff is the beginning of the message with which a test is left to ./test all (package lane).
var putOff = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: lane: only in `)

// add takes what a test that was skipped has printed. It reports whether that is to be shown:
// of what is impossible there are thousands, which are the same each time.
func (s *skips) add(output string) (show bool) {
	if putOff.MatchString(output) {
		s.forAll++
		return false
	}
	if notJudged.MatchString(output) {
		s.notJudged++
		return true
	}
	why := ""
	if m := suiteSkip.FindStringSubmatch(output); m != nil {
		why = m[1]
	}
	switch why {
	case "impossible":
		s.impossible++
		return false
	case "not wired":
		s.notWired++
	case "waived":
		s.waived++
	default:
		s.other++
	}
	return true
}

func (s *skips) merge(o skips) {
	s.impossible += o.impossible
	s.notWired += o.notWired
	s.waived += o.waived
	s.notJudged += o.notJudged
	s.other += o.other
	s.forAll += o.forAll
}

// count returns how many were skipped, without those that are left to ./test all.
func (s *skips) count() int { return s.impossible + s.notWired + s.waived + s.notJudged + s.other }

// print prints how many tests are left to ./test all, and the line that parts those that were skipped, if there are any.
func (s *skips) print(out io.Writer) {
	if s.forAll > 0 {
		fmt.Fprintf(out, "for ./test all: %d\n", s.forAll)
	}
	if s.count() > 0 {
		fmt.Fprintf(out, "skipped: %d impossible there, %d not wired, %d known failures (waived), %d not judged, %d other\n",
			s.impossible, s.notWired, s.waived, s.notJudged, s.other)
	}
}
