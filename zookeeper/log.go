package zookeeper

import (
	"context"
	"fmt"
	"log/slog"
)

// libraryLog passes on what the client library has to say, for debugging: what
// matters of it is told by errors and by the session itself.
type libraryLog struct{ to *slog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	if l.to.Enabled(context.Background(), slog.LevelDebug) {
		l.to.Debug("zookeeper client: " + fmt.Sprintf(format, args...))
	}
}
