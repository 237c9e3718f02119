package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// HeaderFormat is the number of the format in which headers are stored. Processes of different
// versions can stand in one line if they have the same number. A later version that only adds
// fields keeps it.
const HeaderFormat = 1

// storedHeader begins every stored header with {"succession":FORMAT. Data that begins
// otherwise is no header: other libraries create the path of an election with data of
// their own.
type storedHeader struct {
	Format int `json:"succession"`
	Header
}

// Encode returns h as it is stored.
func (h Header) Encode() []byte {
	b := encode(storedHeader{Format: HeaderFormat, Header: h})
	if h.Later == "" {
		return b
	}
	parts := merge(b, []byte(h.Later))
	delete(parts, "succession")
	return append(fmt.Appendf(nil, `{"succession":%d,`, HeaderFormat), encode(parts)[1:]...)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return b
}

// merge returns the members of both objects. If both have a member, merge merges its values if
// these are objects, and otherwise takes that of the first.
func merge(object, later []byte) map[string]json.RawMessage {
	var all, more map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil {
		return nil
	}
	_ = json.Unmarshal(later, &more) // as ParseHeader has made it
	for name, v := range more {
		if known, ok := all[name]; !ok {
			all[name] = v
		} else if parts := merge(known, v); parts != nil {
			all[name] = encode(parts)
		}
	}
	return all
}

// Understood returns nil if this version knows all that a leader of this election must know. A
// later version says in the header's field "needs" what earlier ones do not know. If there is such
// a field, a candidate of this version must not lead, and Understood fails with [ErrHeader].
func (h Header) Understood() error {
	if h.Later == "" {
		return nil
	}
	var later struct {
		Needs json.RawMessage `json:"needs"`
	}
	if err := json.Unmarshal([]byte(h.Later), &later); err != nil || later.Needs == nil {
		return nil
	}
	return fmt.Errorf("%w: whoever leads must know of %s, and this version does not; update this process", ErrHeader, later.Needs)
}

// ParseHeader reads the header of an election. Data that is empty, or that does not begin
// like a header, is the zero Header. Data that begins like one and cannot be understood
// is an [ErrHeader]: if its fence were taken for 0, tokens would fall. So is one whose fence is
// larger than [MaxFence]. What a later version has added is in the field Later; [Header.Understood]
// says whether this version can lead nevertheless.
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
	case err == nil && dec.More():
		err = fmt.Errorf("more follows it")
	case err != nil: // a later version may have added something
		if h, ok := parseLater(b); ok {
			s, err = h, nil
		}
	}
	if err != nil {
		return Header{}, fmt.Errorf("%w: %v", ErrHeader, err)
	}
	if s.Format != HeaderFormat {
		return Header{}, fmt.Errorf("%w: format %d, this version reads format %d", ErrHeader, s.Format, HeaderFormat)
	}
	if err := s.Header.check(); err != nil {
		return Header{}, err
	}
	return s.Header, nil
}

// parseLater reads a header with fields that this version does not know. It is slower than the
// reader of known fields.
func parseLater(b []byte) (s storedHeader, ok bool) {
	if json.Unmarshal(b, &s) != nil {
		return s, false
	}
	var parts map[string]json.RawMessage
	_ = json.Unmarshal(b, &parts) // it is an object
	delete(parts, "succession")
	later, ok := unknown(encode(parts), reflect.TypeFor[Header]())
	s.Later = string(encode(later))
	return s, ok
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
