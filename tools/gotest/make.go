package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// make runs the commands of a list, one after the other, and passes on what they print.
func (s *schedule) make(list []*need, out *console) {
	for _, n := range list {
		argv := slices.Concat([]string{"nice", "-n", "19"}, n.command)
		lines := out.lines(n.name + ": ")
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = lines, lines
		err := cmd.Run()
		lines.Close()
		s.mu.Lock()
		if n.made = err == nil; err != nil {
			n.err = fmt.Errorf("it needs %s, and '%s' has failed (%w): what it has printed is above",
				n.name, strings.Join(n.command, " "), err)
		}
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}
