package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// HeaderFormat is the number of the format in which headers are stored. Processes of different
// versions can stand in one line if they have the same number. A later version keeps it if it only
// adds to Notes, and says in Needs what leaders must know of that. If it adds what drivers decide
// by, it has another number.
const HeaderFormat = 2

// storedHeader begins every stored header with {"succession":FORMAT. Data that begins
// otherwise is no header: other libraries create the path of an election with data of
// their own.
type storedHeader struct {
	Format int `json:"succession"`
	Header
	Notes json.RawMessage `json:"notes,omitempty"` // in place of the text of Header
}

// Encode returns h as it is stored. It panics if Notes is not empty and no JSON object.
func (h Header) Encode() []byte {
	s := storedHeader{Format: HeaderFormat, Header: h, Notes: json.RawMessage(h.Notes)}
	b, err := json.Marshal(s)
	if err != nil || h.Notes != "" && !isObject(s.Notes) {
		panic(fmt.Sprintf("backend: the Notes of a header are no JSON object: %q", h.Notes))
	}
	return b
}

// isObject reports whether a JSON value is an object.
func isObject(v json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(v, " \t\r\n"), []byte("{"))
}

// Understood returns nil if this version knows all that a leader of this election must know. A
// later version says in Needs what earlier ones do not know. Then a candidate of this version must
// not lead, and Understood fails with [ErrHeader].
func (h Header) Understood() error {
	if h.Needs == "" {
		return nil
	}
	return fmt.Errorf("%w: whoever leads must know of %s, and this version does not; update this process", ErrHeader, h.Needs)
}

// ParseHeader reads the header of an election. Data that is empty, or that does not begin
// like a header, is the zero Header. Data that begins like one and cannot be understood
// is an [ErrHeader]: if its fence were taken for 0, tokens would fall. So is one whose fence is
// larger than [MaxFence]. What [Header] Notes mean is not looked at; [Header.Understood] says
// whether this version can lead.
func ParseHeader(b []byte) (Header, error) {
	if !bytes.HasPrefix(b, []byte(`{"succession":`)) {
		return Header{}, nil
	}
	return parse(b)
}

// parse is not inlined: a waiter in a line without a header would otherwise keep the stack for it.
// It takes names as they are, where package json would take "Fence" for the fence, too.
//
//go:noinline
func parse(b []byte) (h Header, err error) {
	damaged := func(format string, args ...any) (Header, error) {
		return Header{}, fmt.Errorf("%w: %s", ErrHeader, fmt.Sprintf(format, args...))
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return damaged("%v", err)
	}
	var format int
	if err := json.Unmarshal(fields["succession"], &format); err != nil || format != HeaderFormat {
		return damaged("format %s, this version reads format %d; docs/compatibility.md says what to do", fields["succession"], HeaderFormat)
	}
	delete(fields, "succession")
	for name, v := range fields {
		var into any
		switch name {
		case "fence":
			into = &h.Fence
		case "gate":
			into = &h.Gate
		case "sealed":
			into = &h.Sealed
		case "needs":
			into = &h.Needs
		case "notes":
			if !isObject(v) {
				return damaged("its notes are no JSON object")
			}
			var compact, notes bytes.Buffer
			_ = json.Compact(&compact, v) // it is an object
			json.HTMLEscape(&notes, compact.Bytes())
			h.Notes = notes.String() // as Encode writes it
			continue
		default:
			return damaged("this version does not know its field %q; update this process, or find out who has written it", name)
		}
		if err := json.Unmarshal(v, into); err != nil || string(v) == "null" {
			return damaged("its field %s is %s", name, v)
		}
	}
	if err := h.check(); err != nil {
		return Header{}, err
	}
	return h, nil
}
