package local

import (
	"log/slog"
	"os"
	"strconv"
	"time"
)

// Options are the settings of [New]. nil and the zero value are the defaults.
type Options struct {
	// LockTimeout bounds how long a write waits for another process that writes to the
	// same election or record. That takes milliseconds, unless the other process was
	// stopped meanwhile. The write then fails with [backend.ErrUnavailable]. 0 is 10 s.
	LockTimeout time.Duration
	// Logger gets a warning if there is no inotify and the backend looks for changes
	// once a second instead. nil means [slog.Default].
	Logger *slog.Logger
}

// DefaultDir returns the folder that Open takes if the URL names none:
// /var/tmp/succession-UID. It does not depend on the environment, so that a user's shells,
// services and cron jobs use the same folder, and it outlives a reboot. A container, and a unit of systemd
// with PrivateTmp= or DynamicUser=, has a /var/tmp of its own: name a folder there.
func DefaultDir() string { return "/var/tmp/succession-" + strconv.Itoa(os.Geteuid()) }
