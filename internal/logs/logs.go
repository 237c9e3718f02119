// Package logs says where messages go if nobody has said it.
package logs

import (
	"context"
	"log/slog"
)

// Or returns l. If l is nil, it returns a logger that passes warnings and errors on to what
// [slog.Default] is at the time of the call, and discards the rest: what a person must look after is
// not lost in a program that has set no logger.
func Or(l *slog.Logger) *slog.Logger {
	if l != nil {
		return l
	}
	return slog.New(warnings{slog.Default().Handler()})
}

type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
