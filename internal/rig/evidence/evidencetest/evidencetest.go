//go:build linux

// Package evidencetest makes sound evidence, which tests then spoil to see that it is judged
// broken.
package evidencetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/evidence"
	"github.com/succession-dev/succession/internal/rig/store"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// Told returns the note of a leader that finds its term over: it last acted at led.
func Told(at, led, deadline time.Duration, candidate string, token uint64) history.Event {
	e := Event(at, history.CheckFailed, candidate, token, token)
	e.Led, e.Deadline = led, deadline
	return e
}

// Event returns a note.
func Event(at time.Duration, k history.Kind, candidate string, position, token uint64) history.Event {
	return history.Event{At: at, Kind: k, Election: "alpha", Candidate: candidate, Position: position, Token: token}
}

// Round adds one round of writes, all of which succeed.
func Round(e *evidence.Evidence, at time.Duration, candidate string, token, seq uint64) {
	e.Stores["alpha"] = append(e.Stores["alpha"], store.Write{At: at, Checked: at, Token: token, Seq: seq, Candidate: candidate})
	for i, target := range []string{worker.File, worker.Counter, worker.Last} {
		op := worker.Op{
			From: at + time.Duration(i)*time.Second/10, Election: "alpha", Candidate: candidate,
			Target: target, Token: token, Seq: seq,
		}
		op.Value = fmt.Sprintf("%d %d", token, seq)
		op.To, op.Outcome = op.From+time.Second/20, worker.OK
		if target == worker.Counter {
			op.Value = fmt.Sprintf("%d %s", len(e.Ops)/3+1, op.Value)
			op.Prev = e.Records[worker.Record(target, "alpha")]
		}
		if target != worker.File {
			op.Version = int64(len(e.Ops) + 1)
			e.Records[worker.Record(target, "alpha")] = op.Value
		}
		e.Ops = append(e.Ops, op)
	}
}

// Op returns the op of a target in a round, from 0.
func Op(e *evidence.Evidence, round int, target string) *worker.Op {
	return &e.Ops[3*round+slices.Index([]string{worker.File, worker.Counter, worker.Last}, target)]
}

// Rules returns which rules were broken, each once.
func Rules(found []history.Violation) []history.Rule {
	var out []history.Rule
	for _, v := range found {
		if !slices.Contains(out, v.Rule) {
			out = append(out, v.Rule)
		}
	}
	slices.Sort(out)
	return out
}
