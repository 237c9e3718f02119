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
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("history: %w", err)
		}
	}
	for _, f := range h.Faults {
		if err := enc.Encode(f); err != nil {
			return fmt.Errorf("history: %w", err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return nil
}

// Read reads what [History.Write] or a [Recorder] wrote, and puts it in order of time. An
// error names the line. Read skips a last line without a line end if it cannot be parsed: a
// process that crashed while it wrote leaves such a line.
func Read(r io.Reader) (*History, error) {
	var h History
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("history: line %d: %w", n, err)
		}
		last := err == io.EOF
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if err := h.add(text); err != nil && !last {
				return nil, fmt.Errorf("history: line %d: %w", n, err)
			}
		}
		if last {
			return Merge(&h), nil
		}
	}
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
		if err != nil {
			return fmt.Errorf("history: line %d: %w", n, err)
		}
		e, err := decode[Event](line)
		if err != nil {
			return fmt.Errorf("history: line %d: %w", n, err)
		}
		e.At -= ahead
		for _, t := range []*time.Duration{&e.Deadline, &e.Led} {
			if *t > 0 {
				*t = max(1, *t-ahead)
			}
		}
		if err := e.check(); err != nil {
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

// add adds one line. Its fields tell whether it is an event or a fault.
func (h *History) add(line []byte) error {
	var is struct {
		Fault *json.RawMessage `json:"fault"`
	}
	if err := json.Unmarshal(line, &is); err != nil {
		return err
	}
	if is.Fault != nil {
		f, err := decode[Fault](line)
		if err == nil {
			err = f.check()
		}
		if err == nil {
			h.Faults = append(h.Faults, f)
		}
		return err
	}
	e, err := decode[Event](line)
	if err == nil {
		err = e.check()
	}
	if err == nil {
		h.Events = append(h.Events, e)
	}
	return err
}

func decode[T any](line []byte) (T, error) {
	var v T
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, err
	}
	if dec.More() {
		return v, errors.New("more follows on the same line")
	}
	return v, nil
}
