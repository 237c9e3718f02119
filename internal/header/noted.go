package header

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// A Header is a [backend.Header] with what the packages elect and migrate note in it.
type Header struct {
	Fence  uint64
	Sealed string
	Needs  string
	// Acknowledged is the token of the newest term whose leader has said that its work
	// has begun. It is raised with the fence.
	Acknowledged uint64
	// Resign is the token of the newest term whose leader has been asked to
	// resign. No leader obeys a larger number than its own token. It is raised with the fence.
	Resign uint64
	// Asked is for people. It says who has asked for Resign, and after a newline why; or it is
	// empty.
	Asked string
	// Choice says who is to lead, where that is not simply the next in line. The zero value means
	// that it is.
	Choice Choice
	// Migration is the newest move of this election between two coordinators; the zero
	// value means that there was none.
	Migration Migration
	// Later has the notes that only a later version of this project knows, as a JSON object. It may
	// be empty. It is kept when the header is written again.
	Later string
}

// A Choice is what a header says of who is to lead. Package elect writes and reads it.
// The line is never reordered: a candidate that is first and not the one to lead leaves, and joins again.
type Choice struct {
	// Readiness says that there are, or were, candidates that can be unready.
	Readiness bool `json:"readiness,omitempty"`
	// Ranked says that there are, or were, candidates with a priority or a site.
	Ranked bool `json:"ranked,omitempty"`
	// Site is that of the newest leader that had a site.
	Site string `json:"site,omitempty"`
	// Wish names the member that is to lead next.
	Wish Wish `json:"wish,omitzero"`
	// Gate is the position of the gate that pauses the election; see [Line.Paused].
	Gate uint64 `json:"gate,omitempty"`
}

// A Wish names a member that is to lead. It lapses when that member leads or has gone, or when
// Until has passed.
type Wish struct {
	Key      string `json:"key,omitempty"`
	Position uint64 `json:"position,omitempty"`
	// Until is in milliseconds since 1970, by the clocks of the candidates. No guarantee rests on it.
	Until int64 `json:"until,omitempty"`
}

// A Migration is what a header says of the election's move from one coordinator to
// another. Package migrate writes and reads it.
type Migration struct {
	// ID tells this migration from every other.
	ID string `json:"id,omitempty"`
	// From and To are the addresses of the two coordinators.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Step is how far the migration has come, as far as this coordinator knows.
	Step string `json:"step,omitempty"`
	// Gate is the position of the gate. It stands on the coordinator that the election
	// moves to; in the header on the other one Gate is 0. It is stored as [backend.Header] Gate.
	Gate uint64 `json:"-"`
	// Seal says that the gate was a seal before the migration began. If the migration
	// is aborted, it is a seal again.
	Seal bool `json:"seal,omitempty"`
	// Over is the position of the gate of a migration in the opposite direction that
	// was begun at the same time and has to give way to this one; 0 if there is none.
	Over uint64 `json:"over,omitempty"`
}

// notes is what this version knows of a header's notes.
type notes struct {
	Elect struct {
		Acknowledged uint64 `json:"acknowledged,omitempty"`
		Resign       uint64 `json:"resign,omitempty"`
		Asked        string `json:"asked,omitempty"`
		Choice       Choice `json:"choice,omitzero"`
	} `json:"elect,omitzero"`
	Migrate Migration `json:"migrate,omitzero"`
}

// Parse is [backend.ParseHeader] and then [Of].
func Parse(b []byte) (Header, error) {
	h, err := backend.ParseHeader(b)
	if err != nil {
		return Header{}, err
	}
	return Of(h)
}

// Of reads the notes of h. It fails with [backend.ErrHeader] if they cannot be understood.
func Of(h backend.Header) (Header, error) {
	out := Header{Fence: h.Fence, Sealed: h.Sealed, Needs: h.Needs}
	out.Migration.Gate = h.Gate
	if h.Notes == "" {
		return out, nil
	}
	if err := out.read([]byte(h.Notes)); err != nil {
		return Header{}, err
	}
	return out, nil
}

// read is not inlined: a waiter in a line without notes would otherwise keep the stack for it.
//
//go:noinline
func (h *Header) read(b []byte) error {
	var n notes
	if err := json.Unmarshal(b, &n); err != nil {
		return fmt.Errorf("%w: its notes cannot be read: %.512s", backend.ErrHeader, b)
	}
	var later map[string]json.RawMessage
	if !bytes.Equal(b, encode(n)) { // a later version has added something, or somebody has written it by hand
		var ok bool
		if later, ok = unknown(b, reflect.TypeFor[notes]()); !ok {
			return fmt.Errorf("%w: its notes have a name that differs from a known one only in the case of letters: %.512s", backend.ErrHeader, b)
		}
	}
	h.Acknowledged, h.Resign, h.Asked, h.Choice = n.Elect.Acknowledged, n.Elect.Resign, n.Elect.Asked, n.Elect.Choice
	n.Migrate.Gate = h.Migration.Gate
	h.Migration = n.Migrate
	if len(later) > 0 {
		h.Later = string(encode(later))
	}
	return nil
}

// Stored returns h as drivers know it.
func (h Header) Stored() backend.Header {
	var n notes
	n.Elect.Acknowledged, n.Elect.Resign, n.Elect.Asked, n.Elect.Choice = h.Acknowledged, h.Resign, h.Asked, h.Choice
	n.Migrate = h.Migration
	n.Migrate.Gate = 0
	text := encode(n)
	if h.Later != "" {
		text = encode(merge(text, []byte(h.Later)))
	}
	out := backend.Header{Fence: h.Fence, Gate: h.Migration.Gate, Sealed: h.Sealed, Needs: h.Needs}
	if string(text) != "{}" {
		out.Notes = string(text)
	}
	return out
}

// Encode returns h as it is stored.
func (h Header) Encode() []byte { return h.Stored().Encode() }

// Token is [backend.Header.Token].
func (h Header) Token(position uint64) (uint64, error) {
	return backend.Header{Fence: h.Fence}.Token(position)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return b
}

// WithLater returns h with all that a later version has noted in other, and what leaders must know of
// it, but for what it has noted of a migration. If both have the same note, that of other counts.
func (h Header) WithLater(other Header) Header {
	all := merge([]byte(other.Later), []byte(h.Later))
	if of := merge([]byte(h.Later), nil)["migrate"]; of != nil {
		all["migrate"] = of
	} else {
		delete(all, "migrate")
	}
	if h.Later = ""; len(all) > 0 {
		h.Later = string(encode(all))
	}
	if !strings.Contains(h.Needs, other.Needs) {
		h.Needs = strings.TrimPrefix(h.Needs+"; "+other.Needs, "; ")
	}
	return h
}

// merge returns the members of both objects, each of which may be empty. If both have a member, merge merges its values if
// these are objects, and otherwise takes that of the first.
func merge(object, later []byte) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage)
	if len(object) > 0 && json.Unmarshal(object, &all) != nil {
		return nil
	}
	var more map[string]json.RawMessage
	_ = json.Unmarshal(later, &more) // as read has made it
	for name, v := range more {
		if known, ok := all[name]; !ok {
			all[name] = v
		} else if parts := merge(known, v); parts != nil {
			all[name] = encode(parts)
		}
	}
	return all
}

// unknown returns the members of the object that are no fields of the struct, nor of the structs in
// it. It refuses a name that differs from the name of a field, and that package json takes for that
// field. Package json has read the object into such a struct before.
func unknown(object []byte, fields reflect.Type) (later map[string]json.RawMessage, ok bool) {
	_ = json.Unmarshal(object, &later)
	for i := range fields.NumField() {
		f := fields.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		known, there := later[name]
		delete(later, name)
		for other := range later {
			if strings.EqualFold(other, name) {
				return nil, false
			}
		}
		if !there || f.Type.Kind() != reflect.Struct {
			continue
		}
		within, ok := unknown(known, f.Type)
		if !ok {
			return nil, false
		}
		if len(within) > 0 {
			later[name] = encode(within)
		}
	}
	return later, true
}

// A Line is a [backend.Line] with what its header notes.
type Line struct {
	Members []backend.Member
	Header  Header
	Version backend.Version
}

// LineOf reads the notes of the header of l. It fails with [backend.ErrHeader] if they cannot be understood.
func LineOf(l backend.Line) (Line, error) {
	h, err := Of(l.Header)
	if err != nil {
		return Line{}, err
	}
	return Line{l.Members, h, l.Version}, nil
}

// Token is [backend.Line.Token].
func (l Line) Token(m backend.Member) uint64 {
	return backend.Line{Header: backend.Header{Fence: l.Header.Fence}}.Token(m)
}

// Paused returns the gate of a pause, which the header names, if that gate stands in the line. The
// gate's value says who set it and why: an ID, and after a newline the reason.
func (l Line) Paused() (gate backend.Member, paused bool) {
	if l.Header.Choice.Gate == 0 {
		return backend.Member{}, false
	}
	for _, m := range l.Members {
		if m.Pinned && m.Position == l.Header.Choice.Gate {
			return m, true
		}
	}
	return backend.Member{}, false
}
