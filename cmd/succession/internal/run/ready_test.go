package run

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestReadyIsALineOfShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	for line, want := range map[string]string{
		"true":                            "",
		"exit 3":                          "--ready: exit status 3",
		"echo first; echo no disk; false": "no disk",
		"echo no disk >&2; exit 1":        "no disk",
		"no-such-program-at-all":          "not found",
	} {
		err := choice{ready: line}.ask(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := (choice{ready: "sleep 60"}).ask(ctx); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("one that does not end: %v", err)
	}
}
