package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// HeaderFormat is the number of the format in which headers are stored. Processes of different
// versions can stand in one line if they have the same number. A later version that adds what
// drivers decide by has another one; one that only adds to Notes keeps it.
const HeaderFormat = 2

// storedHeader begins every stored header with {"succession":FORMAT. Data that begins
// otherwise is no header: other libraries create the path of an election with data of
// their own.
type storedHeader struct {
	Format int `json:"succession"`
	Header
	Notes json.RawMessage `json:"notes,omitempty"`
}

// Encode returns h as it is stored. It panics if Notes is not empty and no JSON object.
func (h Header) Encode() []byte {
	s := storedHeader{Format: HeaderFormat, Header: h, Notes: json.RawMessage(h.Notes)}
	b, err := json.Marshal(s)
	if err != nil || !isObject(s.Notes) {
		panic(fmt.Sprintf("backend: the Notes of a header are no JSON object: %q", h.Notes))
	}
	return b
}

// isObject reports whether the JSON value is an object, or missing.
func isObject(v json.RawMessage) bool { return len(v) == 0 || v[0] == '{' }

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
//
//go:noinline
func parse(b []byte) (Header, error) {
	var s storedHeader
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(&s)
	switch {
	case s.Format != 0 && s.Format != HeaderFormat: // whatever else is there
		return Header{}, fmt.Errorf("%w: format %d, this version reads format %d; %s", ErrHeader, s.Format, HeaderFormat, otherFormat(s.Format))
	case err == nil && dec.More():
		err = fmt.Errorf("more follows it")
	case err == nil && !isObject(s.Notes):
		err = fmt.Errorf("its notes are no JSON object")
	}
	if err != nil {
		return Header{}, fmt.Errorf("%w: %v", ErrHeader, err)
	}
	var compact, notes bytes.Buffer
	if json.Compact(&compact, s.Notes) == nil {
		json.HTMLEscape(&notes, compact.Bytes()) // as Encode writes it
		s.Header.Notes = notes.String()
	}
	if err := s.Header.check(); err != nil {
		return Header{}, err
	}
	return s.Header, nil
}

// otherFormat says what to do about a header of another format.
func otherFormat(format int) string {
	if format > HeaderFormat {
		return "update this process"
	}
	return "no release has written it. Stop all candidates, note the largest token that anybody holds, delete the record of the election, " +
		"and the one of that name with .fence behind it, by the coordinator's own tools; then raise the fence above that token"
}
