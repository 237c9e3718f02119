package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/recipes/record"
)

// entry is one state of a record in the output of get and follow.
type entry struct {
	Value   *string         `json:"value,omitempty"`
	Base64  []byte          `json:"base64,omitempty"` // in the place of a value that is no UTF-8
	Version backend.Version `json:"version"`
}

// entryOf returns nil if there is no record.
func entryOf(e record.Entry[[]byte]) *entry {
	if !e.Exists() {
		return nil
	}
	if !utf8.Valid(e.Value) {
		return &entry{Base64: e.Value, Version: e.Version}
	}
	text := string(e.Value)
	return &entry{Value: &text, Version: e.Version}
}

// stateLine is what follow prints of e.
func stateLine(e record.Entry[[]byte]) string {
	now := time.Now().Format(time.TimeOnly)
	if !e.Exists() {
		return now + "  no record"
	}
	return fmt.Sprintf("%s  version %d  %s", now, e.Version, ui.Visible(string(e.Value)))
}

// withRecord calls f with the record, for a command that takes no longer than --timeout.
func withRecord(g *connect.Flags, name string, f func(context.Context, *record.Value[[]byte]) error) error {
	return g.WithBackend(name, func(_, opening context.Context, b backend.Backend) error {
		return f(opening, record.New(b, name, record.Bytes()))
	})
}

// changeRecord is withRecord for a command that changes the record. It refuses what belongs to an election
// before it looks at the record.
func changeRecord(g *connect.Flags, name string, f func(context.Context, *record.Value[[]byte]) error) error {
	return g.WithBackend(name, func(_, opening context.Context, b backend.Backend) error {
		s, err := b.Session(opening)
		if err == nil {
			err = header.CheckFree(opening, s, name)
		}
		if err != nil {
			return err
		}
		return f(opening, record.New(b, name, record.Bytes()))
	})
}

func noRecord(g *connect.Flags, name string) error {
	return ui.Exitf(ui.ExitAbsent, "there is no record %q%s", name, g.Where())
}

// hasChanged says that the record, which is now e, is not as --at names it.
func hasChanged(name string, e record.Entry[[]byte], at backend.Version) error {
	state := func(v backend.Version) string {
		if v == backend.Absent {
			return absent
		}
		return fmt.Sprintf("at version %d", v)
	}
	return ui.Exitf(ui.ExitRefused, "%q is not %s, but %s", name, state(at), state(e.Version))
}

// An atVersion is the value of --at; 0 where it is not given.
type atVersion backend.Version

const absent = "absent"

func (v *atVersion) Type() string { return "version" }

func (v *atVersion) String() string {
	switch *v {
	case 0:
		return ""
	case atVersion(backend.Absent):
		return absent
	}
	return strconv.FormatInt(int64(*v), 10)
}

func (v *atVersion) Set(s string) error {
	if s == absent {
		*v = atVersion(backend.Absent)
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("give a version as set and get -o json print it, or %s", absent)
	}
	*v = atVersion(n)
	return nil
}
