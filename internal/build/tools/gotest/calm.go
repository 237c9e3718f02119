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

// mayNotBeJudged is how many of a run may be not judged. With more, the run has shown too little.
const mayNotBeJudged = 5

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

// tooBusy reports whether too much was not judged.
func (c *calm) tooBusy() bool { return len(c.notJudged) > mayNotBeJudged }

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
