package conformance

import (
	"context"
	"io"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// Stand is a candidate of the election for as long as in lasts: it campaigns, leads
// until its term is over, and campaigns again. It is the whole work of the command
// that [Faults] Process returns; b is its own, and the caller closes it.
//
// What it does is written to out, in lines of JSON, for the process that reads it on
// the same machine: times are those of this machine's wall clock when Stand was called,
// counted on by the monotonic clock. Commands are read from in, one a line:
//
//	resign          resigns the term of now, if there is one
//	suspend 20s     behaves as if the machine had been suspended for so long. On Linux it then
//	                waits for the context of the term, and asks no more whether it leads
//
// At the end of in it resigns and returns nil. It blocks until then, until ctx ends,
// until a campaign fails, or until a command is not understood or out not written.
// The reading of in ends with in, and not before.
func Stand(ctx context.Context, b backend.Backend, election, id string, in io.Reader, out io.Writer) error {
	return engine.Stand(ctx, b, election, id, in, out)
}
