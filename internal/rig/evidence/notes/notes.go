// Package notes reads what was noted in histories. Only rigs and tests do that.
package notes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/succession-dev/succession/internal/history"
)

// Read reads what [history.History.Write] or a [history.Recorder] wrote, and puts it in order
// of time. An error names the line. Read skips a last line without a line end if it cannot be
// parsed: a process that crashed while it wrote leaves such a line.
func Read(r io.Reader) (*history.History, error) {
	events := history.NewRecorder(func() time.Duration { return 0 }, nil)
	var faults []history.Fault
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("history: line %d: %w", n, err)
		}
		last := err == io.EOF
		line, err = bytes.TrimSpace(line), nil
		switch {
		case len(line) == 0:
		case bytes.HasPrefix(line, []byte(`{"fault":`)):
			var f history.Fault
			if f, err = fault(line); err == nil {
				faults = append(faults, f)
			}
		default:
			err = errors.Unwrap(events.Copy(bytes.NewReader(append(line, '\n')), 0, nil)) // without the number of the line
		}
		if err != nil && !last {
			return nil, fmt.Errorf("history: line %d: %w", n, err)
		}
		if last {
			return history.Merge(events.History(), &history.History{Faults: faults}), nil
		}
	}
}

func fault(line []byte) (f history.Fault, err error) {
	if err = json.Unmarshal(line, &f); err == nil && (f.Kind == "" || f.From < 0 || f.To < f.From) {
		err = fmt.Errorf("fault %q lasts from %d to %d", f.Kind, f.From, f.To)
	}
	return f, err
}

// Between returns what was noted in h at from or later, and before to. Faults are cut to that
// time.
func Between(h *history.History, from, to time.Duration) *history.History {
	var out history.History
	for _, e := range h.Events {
		if from <= e.At && e.At < to {
			out.Events = append(out.Events, e)
		}
	}
	for _, f := range h.Faults {
		if f.From < to && f.To >= from {
			f.From, f.To = max(f.From, from), min(f.To, to)
			out.Faults = append(out.Faults, f)
		}
	}
	return &out
}
