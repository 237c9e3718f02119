package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxLine bounds one line of a history, in bytes.
const maxLine = 1 << 20

// Write writes the history as JSON lines, one for each event and each fault.
func (h *History) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	enc := json.NewEncoder(b)
	for _, e := range h.Events {
		_ = enc.Encode(e) // Flush returns the first error of w
	}
	for _, f := range h.Faults {
		_ = enc.Encode(f)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// Copy reads from the reader what the recorder of another process writes, and notes it as it
// comes, until the end. It calls each, if not nil, with every event that it has noted. ahead is
// how far the clock of the other process is ahead of r's. A last line that a crash left
// unfinished is lost.
func (r *Recorder) Copy(from io.Reader, ahead time.Duration, each func(Event)) error {
	in := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}
		var e Event
		if err == nil {
			e, err = decode(line, ahead)
		}
		if err != nil {
			return fmt.Errorf("history: line %d: %w", n, err)
		}
		r.Note(e)
		if each != nil {
			each(e)
		}
	}
}

// readLine returns the next line. At the end it returns what is left, with io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// decode reads an event that was dated by a clock that is ahead of ours.
func decode(line []byte, ahead time.Duration) (Event, error) {
	var e Event
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return e, err
	}
	if dec.More() {
		return e, errors.New("more follows on the same line")
	}
	e.At -= ahead
	for _, t := range []*time.Duration{&e.Deadline, &e.Led} {
		if *t > 0 {
			*t = max(1, *t-ahead)
		}
	}
	return e, e.check()
}
