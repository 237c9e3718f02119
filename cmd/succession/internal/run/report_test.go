package run

import (
	"log/slog"
	"strings"
	"testing"
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
