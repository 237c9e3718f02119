package backend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// HeaderFormat is the number of the format in which headers are stored. Processes of different
// versions can stand in one line if they have the same. A later version that only adds something keeps the number.
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
	if h.Later == "" && h.Choice.Later == "" && h.Migration.Later == "" {
		return b
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		panic(err) // it was just marshalled
	}
	delete(parts, "succession")
	for name, p := range map[string]struct {
		known any
		later string
	}{"choice": {h.Choice, h.Choice.Later}, "migration": {h.Migration, h.Migration.Later}} {
		if p.later != "" {
			parts[name] = join(encode(p.known), p.later)
		}
	}
	rest := join(encode(parts), h.Later)
	return append(fmt.Appendf(nil, `{"succession":%d,`, HeaderFormat), rest[1:]...)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings always marshal
	}
	return b
}

// join returns the members of both objects as one.
func join(object []byte, later string) []byte {
	var all, more map[string]json.RawMessage
	if json.Unmarshal(object, &all) != nil || later != "" && json.Unmarshal([]byte(later), &more) != nil {
		return object // Later is not as ParseHeader has made it
	}
	for name, v := range more {
		if _, known := all[name]; !known {
			all[name] = v
		}
	}
	return encode(all)
}

// ParseHeader reads the header of an election. Data that is empty, or that does not begin
// like a header, is the zero Header. Data that begins like one and cannot be understood
// is an [ErrHeader]: if its fence were taken for 0, tokens would fall. So is one whose fence is larger than [MaxFence].
// What a later version has added is in the fields Later; whether it can be led without, [Header.Understood] says.
func ParseHeader(b []byte) (Header, error) {
	if !bytes.HasPrefix(b, []byte(`{"succession":`)) {
		return Header{}, nil
	}
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

// parseLater reads a header in which there is more than this version knows. It takes longer than reading any other.
func parseLater(b []byte) (s storedHeader, ok bool) {
	if json.Unmarshal(b, &s) != nil || s.Format != HeaderFormat {
		return s, false
	}
	var parts map[string]json.RawMessage
	if json.Unmarshal(b, &parts) != nil {
		return s, false
	}
	delete(parts, "succession")
	var oks [3]bool
	s.Choice.Later, oks[0] = unknown(parts["choice"], s.Choice)
	s.Migration.Later, oks[1] = unknown(parts["migration"], s.Migration)
	s.Later, oks[2] = unknown(encode(parts), s.Header)
	return s, oks == [3]bool{true, true, true}
}

// unknown returns the members of the object that are no fields of v, as an object; empty if there are none. It refuses
// names that package json takes for those of fields, and that are others.
func unknown(object json.RawMessage, v any) (later string, ok bool) {
	var all map[string]json.RawMessage
	if object == nil {
		return "", true
	}
	if json.Unmarshal(object, &all) != nil {
		return "", false
	}
	t := reflect.TypeOf(v)
	for i := range t.NumField() {
		field, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if field == "-" {
			continue
		}
		delete(all, field)
		for name := range all {
			if strings.EqualFold(name, field) {
				return "", false
			}
		}
	}
	if len(all) == 0 {
		return "", true
	}
	return string(encode(all)), true
}
