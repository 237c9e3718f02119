//go:build linux

package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// The targets of a write.
const (
	File    = "file"    // the store that fences
	Counter = "counter" // the record that is written at the version that was read
	Last    = "last"    // the record that is written whatever its version is
)

// Record returns the name of the record of an election that target stands for.
func Record(target, election string) string { return "chaos/" + target + "/" + election }

// An Outcome is what a writer was told.
type Outcome string

// The outcomes of a write.
const (
	OK      Outcome = "ok"
	Refused Outcome = "refused" // the member does not stand any more, or the token is old
	Changed Outcome = "changed" // the record has another version
	Unknown Outcome = "unknown" // the writer was told nothing: it may have happened
)

// An Op is one write of a leader.
type Op struct {
	N         int           `json:"n"` // counts the writes of one process
	From      time.Duration `json:"from"`
	Election  string        `json:"election"`
	Candidate string        `json:"candidate"`
	Target    string        `json:"target"`
	Token     uint64        `json:"token"`
	Seq       uint64        `json:"seq"` // counts the rounds of a term
	// Prev is what the record held at the version that Counter was written at; empty
	// where there was no record.
	Prev  string `json:"prev,omitempty"`
	Value string `json:"value,omitempty"` // unlike every other of its record

	opEnd
}

// opEnd is what is known when the writer has been told.
type opEnd struct {
	To      time.Duration `json:"to,omitempty"`      // 0 where the writer was told nothing
	Outcome Outcome       `json:"outcome,omitempty"` // of a process that was killed, Unknown
	Version int64         `json:"version,omitempty"` // of the record, where it is OK
	Err     string        `json:"err,omitempty"`
}

// An opLog writes ops as JSON lines: one before, and one after that repeats N. It is
// safe for concurrent use.
type opLog struct {
	clock func() time.Duration

	mu sync.Mutex
	w  io.Writer
	n  int
}

// begin notes that op is about to be made, and returns the func that notes its end.
func (l *opLog) begin(op Op) (end func(Outcome, int64, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	op.N, op.From = l.n, l.clock()
	l.line(op)
	return func(o Outcome, version int64, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		e := opEnd{To: l.clock(), Outcome: o, Version: version}
		if err != nil {
			e.Err = err.Error()
		}
		l.line(struct {
			N int `json:"n"`
			opEnd
		}{op.N, e})
	}
}

// line writes v. A log with holes would prove nothing, so there is no going on
// without it.
func (l *opLog) line(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		_, err = l.w.Write(append(b, '\n'))
	}
	if err != nil {
		panic(fmt.Errorf("the log of writes: %w", err))
	}
}

// ReadOps returns the writes that one process logged. One that was killed may have left
// half a line, which is passed over.
func ReadOps(file string) ([]Op, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []Op
	for n, line := range bytes.Split(b, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		op := Op{opEnd: opEnd{Outcome: Unknown}}
		if err := json.Unmarshal(line, &op); err != nil {
			if bytes.HasSuffix(b, line) { // the last, and without its end
				break
			}
			return nil, fmt.Errorf("%s, line %d: %w", file, n+1, err)
		}
		switch {
		case op.Target != "":
			out = append(out, op)
		case op.N < 1 || op.N > len(out):
			return nil, fmt.Errorf("%s, line %d: the end of write %d, which has not begun", file, n+1, op.N)
		default:
			out[op.N-1].opEnd = op.opEnd
		}
	}
	return out, nil
}
