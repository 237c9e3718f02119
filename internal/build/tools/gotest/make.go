package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// make runs the commands of a list, one after the other, and passes on what they print. One that
// fails is a failure of the run, whether or not anything needs it.
func (r *report) make(ctx context.Context, s *schedule, list []*need) {
	for _, n := range list {
		lines := r.out.lines(n.name + ": ")
		cmd := command(ctx, n.priority, n.command...)
		cmd.Stdout, cmd.Stderr = lines, lines
		cmd.Env = environment()
		began := time.Now()
		err := cmd.Run()
		lines.Close()
		r.times.took(timed{name: n.name, seconds: time.Since(began).Seconds()})
		r.times.used(n.name, processors(cmd.ProcessState))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			err = fmt.Errorf("'%s' has failed (%w): what it has printed is above", strings.Join(n.command, " "), err)
			r.say(fmt.Sprintf("FAIL  %s: %v", n.name, err))
		} else if slices.Contains(s.files, n.name) {
			if err := s.passed.note(n.key(), "", everything); err != nil {
				r.problem(err.Error())
			}
		}
		s.isMade(n, err)
	}
}
