// Package logs says where messages go if nobody has said it.
package logs

import (
	"context"
	"log/slog"
)

// Or returns l. If l is nil, it returns a logger that passes warnings and errors on to [slog.Default],
// as it is at the time of each message, and discards the rest. So what a person must look after is not
// lost in a program that has set no logger.
func Or(l *slog.Logger) *slog.Logger {
	if l != nil {
		return l
	}
	return slog.New(warnings{func(h slog.Handler) slog.Handler { return h }})
}

// warnings adds to the default handler what with adds.
type warnings struct {
	with func(slog.Handler) slog.Handler
}

func (warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && slog.Default().Enabled(ctx, level)
}

func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	return w.with(slog.Default().Handler()).Handle(ctx, r)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{func(h slog.Handler) slog.Handler { return w.with(h).WithAttrs(attrs) }}
}

func (w warnings) WithGroup(name string) slog.Handler {
	return warnings{func(h slog.Handler) slog.Handler { return w.with(h).WithGroup(name) }}
}
