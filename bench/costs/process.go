package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// cpu returns the processor time that the processes have used, by proc(5).
func cpu(processes ...*coordtest.Peer) (sum time.Duration, err error) {
	for _, p := range processes {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			return 0, err
		}
		// What follows the name, in parentheses, begins with the third field.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		var user, system time.Duration
		if _, err := fmt.Sscan(f[11]+" "+f[12], &user, &system); err != nil {
			return 0, err
		}
		sum += (user + system) * (time.Second / 100) // USER_HZ is 100
	}
	return sum, nil
}

// memory returns how much of the process is in memory.
func memory(p *coordtest.Peer) (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.PID()))
	if err != nil {
		return 0, err
	}
	var size, resident int
	_, err = fmt.Sscan(string(b), &size, &resident)
	return resident * os.Getpagesize(), err
}
