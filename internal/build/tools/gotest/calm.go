package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// calm counts what other work of the machine has disturbed: trials that were run again, and rules
// about time or cost that could not be judged.
type calm struct {
	repeated  int
	notJudged []string // each with its figures
}

// mayNotBeJudged is how many may be not judged, of a run of so many tests. With more, the run has shown too little. It is a
// small share, as most tests are not judged by time. It is one for the whole run: a suite that is run by itself may leave out one
// in twenty rules (conformance.Run), which are few in a small one, and may all fall into one busy minute.
func mayNotBeJudged(tests int) int { return max(5, tests/200) }

// repeated is in what a test prints for each trial that is run again, and notJudged, with figures
// behind it, for what it could not judge: it passes then, or is skipped.
const repeated = "calm: repeated: "

var notJudged = regexp.MustCompile(`calm: not judged: (.*)`)

// hear takes a line that a test has printed.
func (c *calm) hear(e event) {
	c.repeated += strings.Count(e.Output, repeated)
	if m := notJudged.FindStringSubmatch(e.Output); m != nil {
		c.notJudged = append(c.notJudged, e.Package+" "+e.Test+": "+m[1])
	}
}

func (c *calm) merge(o calm) {
	c.repeated += o.repeated
	c.notJudged = append(c.notJudged, o.notJudged...)
}

// tooBusy reports whether too much was not judged, in a run of so many tests.
func (c *calm) tooBusy(tests int) bool { return len(c.notJudged) > mayNotBeJudged(tests) }

// print prints the first of what was not judged, and the line that counts, if there is anything.
func (c *calm) print(out io.Writer) {
	const lines, length = 10, 300
	for i, each := range c.notJudged {
		if i == lines {
			fmt.Fprintf(out, "and %d more\n", len(c.notJudged)-lines)
			break
		}
		fmt.Fprintf(out, "not judged: %s\n", each[:min(len(each), length)])
	}
	if c.repeated+len(c.notJudged) > 0 {
		fmt.Fprintf(out, "calm: %d trials repeated, %d not judged: the machine was busy\n", c.repeated, len(c.notJudged))
	}
}
