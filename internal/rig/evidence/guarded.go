//go:build linux

package evidence

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/succession-dev/succession/internal/history"
	"github.com/succession-dev/succession/internal/rig/worker"
)

// checkRecord looks at the guarded writes of one record.
func (e *Evidence) checkRecord(election, target string, w Wins) (out []history.Violation) {
	bad := func(rule history.Rule, op worker.Op, format string, args ...any) {
		out = append(out, history.Violation{
			Rule: rule, Election: election, Candidates: []string{op.Candidate}, From: op.From, To: max(op.From, op.To),
			Text: fmt.Sprintf("guarded write %q to %s: ", op.Value, target) + fmt.Sprintf(format, args...),
		})
	}
	var ops []worker.Op
	for _, op := range e.Ops {
		if op.Election == election && op.Target == target {
			ops = append(ops, op)
		}
	}
	final := e.Records[worker.Record(target, election)]
	there := make(map[string]bool) // the values that were surely written
	if target == worker.Counter {
		there = chain(ops, final, bad)
	}
	versions := make(map[int64]worker.Op)
	for _, op := range ops {
		if op.Outcome == worker.OK {
			there[op.Value] = true
			if other, twice := versions[op.Version]; twice {
				bad(Linearizable, op, "it got version %d, as %q had before", op.Version, other.Value)
			}
			versions[op.Version] = op
		}
		if next := w.After(op.Token); there[op.Value] && next < op.From {
			bad(Unfenced, op, "it was let in %v after a later term had been won", op.From-next)
		}
	}
	if verdict := linearize(ops, final); verdict != porcupine.Ok {
		out = append(out, history.Violation{Rule: Linearizable, Election: election, Text: fmt.Sprintf(
			"the %d guarded writes to %s, which ends as %q, fit no order (porcupine: %s)", len(ops), target, final, verdict)})
	}
	return out
}

// chain goes back from the last value of the counter, each of which names the one that
// it replaced, and returns them all.
func chain(ops []worker.Op, final string, bad func(history.Rule, worker.Op, string, ...any)) map[string]bool {
	wrote := make(map[string]worker.Op)
	for _, op := range ops {
		wrote[op.Value] = op
	}
	there := make(map[string]bool)
	for value := final; value != "" && !there[value]; {
		op, ok := wrote[value]
		if !ok {
			bad(Invented, worker.Op{Value: value}, "nobody wrote it")
			break
		}
		if op.Outcome == worker.Refused || op.Outcome == worker.Changed {
			bad(Invented, op, "it was refused (%s), and is there", op.Err)
		}
		if before, ok := wrote[op.Prev]; ok && op.Token < before.Token {
			bad(Unfenced, op, "it came after %q of a larger token", op.Prev)
		}
		there[value] = true
		value = op.Prev
	}
	for _, op := range ops {
		if op.Outcome == worker.OK && !there[op.Value] {
			bad(Lost, op, "it was acknowledged, and no later value counts it")
		}
	}
	return there
}

// A register is a guarded record as its writers should see it.
type register struct {
	value string
	token uint64
}

// linearizeLimit bounds the search for an order. Where there is one it is found at once.
const linearizeLimit = 2 * time.Minute

// linearize looks for an order of the writes that explains what the writers were told
// and what was read at the end, and in which no write is of a smaller token than one
// before. A write whose writer was told nothing happens at any time after it was made,
// or not at all, which is to say that it happens after the end.
func linearize(ops []worker.Op, final string) porcupine.CheckResult {
	const read = "read"
	end := int64(0)
	var all []porcupine.Operation
	for _, op := range ops {
		end = max(end, int64(op.From), int64(op.To))
		o := porcupine.Operation{Input: op, Call: int64(op.From), Return: int64(op.To)}
		switch op.Outcome {
		case worker.Refused:
			continue // nothing happened, and nothing was learned of the record
		case worker.Unknown:
			o.Return = math.MaxInt64
		}
		all = append(all, o)
	}
	all = append(all, porcupine.Operation{Input: worker.Op{Target: read, Value: final}, Call: end + 1, Return: end + 2})
	return porcupine.CheckOperationsTimeout(porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(register), input.(worker.Op)
			if op.Target == read {
				return s.value == op.Value, s
			}
			fits := op.Token >= s.token && (op.Target == worker.Last || s.value == op.Prev)
			written := register{op.Value, op.Token}
			switch op.Outcome {
			case worker.OK:
				return fits, written
			case worker.Changed:
				return s.value != op.Prev, s
			}
			if fits {
				return true, written
			}
			return true, s
		},
		DescribeOperation: func(input, _ any) string {
			op := input.(worker.Op)
			return strings.Join([]string{op.Target, op.Prev, "->", op.Value, string(op.Outcome)}, " ")
		},
	}, all, linearizeLimit)
}
