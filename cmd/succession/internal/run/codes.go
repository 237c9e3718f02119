package run

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// codes are the exit codes that -E chooses. It is the value of that flag.
type codes struct {
	conflict int // others stood in front (--try, --wait)
	lost     int
	failed   int
}

func (c *codes) Type() string { return "code" }

func (c *codes) String() string { return "" }

// Set takes a number, which is the code of a conflict as in flock(1), or kinds with their numbers.
func (c *codes) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		kind, number, named := strings.Cut(part, "=")
		if !named {
			kind, number = "conflict", part
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > 255 {
			return fmt.Errorf("%q is no exit code; they are from 0 to 255", number)
		}
		switch kind {
		case "conflict":
			c.conflict = n
		case "lost":
			c.lost = n
		case "failed":
			c.failed = n
		default:
			return fmt.Errorf("%q is unknown; use conflict, lost and failed, as in: -E lost=90,failed=91", kind)
		}
	}
	return nil
}

// exitLost is the exit code for what was lost. What is to be said of that has been said.
func (c *codes) exitLost() error { return &ui.ExitError{Code: c.lost} }

// or gives err, unless it asks for an exit code, that of a failure.
func (c *codes) or(err error) error {
	if ui.Asks(err) || err == nil {
		return err
	}
	return &ui.ExitError{Code: c.failed, Err: err}
}
