package zookeeper

import (
	"context"
	"fmt"
	"log/slog"
)

// libraryLog passes on the messages of the client library, for debugging. Errors and the
// session itself tell what matters of them.
type libraryLog struct{ to *slog.Logger }

func (l libraryLog) Printf(format string, args ...any) {
	if l.to.Enabled(context.Background(), slog.LevelDebug) {
		l.to.Debug("zookeeper client: " + fmt.Sprintf(format, args...))
	}
}
