package logs_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/succession-dev/succession/internal/logs"
)

// Without a logger only warnings and errors are told, with all attributes.
func TestOr(t *testing.T) {
	var out, own bytes.Buffer
	plain := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	loggers := []*slog.Logger{logs.Or(nil), logs.Or(slog.New(slog.NewTextHandler(&own, plain)))}
	for i, l := range loggers {
		loggers[i] = l.With("election", "reports").WithGroup("g")
	}
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, plain))) // as a program does that has opened its backend before
	t.Cleanup(func() { slog.SetDefault(was) })

	for _, l := range loggers {
		l.Debug("d")
		l.Info("i")
		l.Warn("w", "k", 1)
		l.Error("e")
	}
	const loud = "level=WARN msg=w election=reports g.k=1\nlevel=ERROR msg=e election=reports\n"
	if out.String() != loud {
		t.Errorf("without a logger there is\n%s; want\n%s", &out, loud)
	}
	if want := "level=DEBUG msg=d election=reports\nlevel=INFO msg=i election=reports\n" + loud; own.String() != want {
		t.Errorf("a logger is told\n%s; want\n%s", &own, want)
	}
}
