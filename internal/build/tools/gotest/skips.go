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
}

// suiteSkip is the beginning of such a message.
var suiteSkip = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: conformance: (impossible|not wired|waived): `)

// add takes what a test that was skipped has printed. It reports whether that is to be shown:
// of what is impossible there are thousands, which are the same each time.
func (s *skips) add(output string) (show bool) {
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
}

// print prints the line that parts the tests that were skipped, if there are any.
func (s *skips) print(out io.Writer) {
	if *s != (skips{}) {
		fmt.Fprintf(out, "skipped: %d impossible there, %d not wired, %d known failures (waived), %d not judged, %d other\n",
			s.impossible, s.notWired, s.waived, s.notJudged, s.other)
	}
}
