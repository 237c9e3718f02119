package local

import (
	"log/slog"
	"time"
)

// Options are the optional settings of [New]; nil is all defaults.
type Options struct {
	// LockTimeout bounds how long a write waits for another process that is
	// writing to the same election or record, which takes milliseconds unless that
	// process was stopped meanwhile. The write then fails with
	// [backend.ErrUnavailable]. 0 is 10 s.
	LockTimeout time.Duration
	// Logger is told when inotify is not to be had and changes are looked for once
	// a second instead. Nil discards.
	Logger *slog.Logger
}
