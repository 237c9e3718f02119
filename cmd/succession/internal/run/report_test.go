package run

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What others have chosen does not move the cursor.
func TestControlCharacters(t *testing.T) {
	var out strings.Builder
	r := newReporter(&out, logText, "reports", "me")
	r.say(message{slog.LevelInfo, "waiting", "waiting behind %s", nil, func() string { return "web\x1b[2J" }})
	r.close()
	if got := out.String(); got != `succession: waiting behind web\u001b[2J`+"\n" {
		t.Errorf("the message is %q", got)
	}
}

// A standard error that nobody reads holds up the end for a second, and no longer.
func TestCloseWhileStandardErrorBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		r := newReporter(out, logText, "reports", "me")
		r.info("waiting", "waiting")
		begin := time.Now()
		r.close()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("it has taken %v, want a second", took)
		}
		in.Close()
	})
}
