//go:build linux

package worker

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// An Act is the newest instant at which a leader was about to ask whether it led, and was
// told so. Each is written over the one before as it is made, so that it is known of a
// process, too, that was killed before it could note the end of its term.
type Act struct {
	Token    uint64        // 0 where there was no act
	At       time.Duration // before the asking
	Deadline time.Duration // of the term, not earlier than at the act; 0 is none
}

// late reports whether the leader was told that it led after its deadline.
func (a Act) late() bool { return 0 < a.Deadline && a.Deadline < a.At }

// actFormat has the same length for all acts.
const actFormat = "%020d %019d %019d\n"

var actLength = len(fmt.Sprintf(actFormat, 0, 0, 0))

// An actFile has one line, of one election, in the file of the process.
type actFile struct {
	file *os.File
	line int
}

// write puts a in the place of the act before. As with the log of writes there is no
// going on without it.
func (f actFile) write(a Act) {
	if _, err := f.file.WriteAt(fmt.Appendf(nil, actFormat, a.Token, a.At, a.Deadline), int64(f.line*actLength)); err != nil {
		panic(fmt.Errorf("the log of acts: %w", err))
	}
}

// ReadActs returns the last act of a process in each of its elections, which are given in
// their order. One that was killed as it began has left no file, and made no acts.
func ReadActs(file string, elections []string) (map[string]Act, error) {
	acts := make(map[string]Act)
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return acts, nil
	}
	if err != nil {
		return nil, err
	}
	for i, line := range slices.Collect(slices.Chunk(b, actLength)) {
		if line[0] == 0 { // there is an act in a later election, and none in this one
			continue
		}
		var a Act
		_, err := fmt.Sscanf(string(line), actFormat, &a.Token, &a.At, &a.Deadline)
		if err != nil || i >= len(elections) {
			return nil, fmt.Errorf("%s: line %d, %q, is no act in one of %q: %v", file, i+1, line, elections, err)
		}
		acts[elections[i]] = a
	}
	return acts, nil
}
