package ui

import (
	"fmt"
	"strings"
	"testing"
)

// What was added to an error that asks for an exit code is said, too.
func TestExitCodeSaysAll(t *testing.T) {
	var out strings.Builder
	code := ExitCode(fmt.Errorf("%w (before that: no space left on device)", Exitf(ExitTimeout, "not elected")), &out)
	if want := "succession: not elected (before that: no space left on device)\n"; code != ExitTimeout || out.String() != want {
		t.Errorf("exit code %d, output %q, want %q", code, out.String(), want)
	}
}
