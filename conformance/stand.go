package conformance

import (
	"context"
	"io"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// Stand runs a candidate of the election: it campaigns, leads until its term is over, and
// campaigns again. This is all that the command of [Faults] Process does. No other candidate
// may use b, and the caller closes it.
//
// Stand writes what it does to out, in lines of JSON, for the process of the suite on the same
// machine. Times are this machine's wall clock as it was when Stand was called, plus what the
// monotonic clock has counted since. Stand reads commands from in, one a line:
//
//	resign          resigns the present term, if there is one
//	suspend 20s     behaves as if the machine had been suspended for that time. On Linux it then
//	                waits for the context of the term, and asks no more whether it leads
//
// At the end of in, Stand resigns and returns nil. It blocks until then, until ctx ends,
// until a campaign fails, until a command is not understood, or until out cannot be written.
// The goroutine that reads in ends only at the end of in.
func Stand(ctx context.Context, b backend.Backend, election, id string, in io.Reader, out io.Writer) error {
	return engine.Stand(ctx, b, election, id, in, out)
}
