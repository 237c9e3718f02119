package local

import "time"

// TTL is 0: only the end of the process, or Close, ends the session.
func (s *session) TTL() time.Duration { return 0 }

// MaxMargin is 0, as TTL is; see [backend.Session].
func (s *session) MaxMargin() time.Duration { return 0 }

// Deadline is the zero time, which means never: the kernel keeps the locks of a process as
// long as the process lives.
func (s *session) Deadline() time.Time { return time.Time{} }
