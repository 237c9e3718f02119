package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// A Codec turns values into bytes and back. Both funcs may be called from several goroutines at
// once.
type Codec[T any] struct {
	Encode func(T) ([]byte, error)
	Decode func([]byte) (T, error)
}

// JSON is the codec of encoding/json. It refuses to decode a record if more text follows the value.
// Fields that T does not have are ignored, so that an older program can read what a newer one
// writes.
func JSON[T any]() Codec[T] {
	return Codec[T]{
		Encode: func(v T) ([]byte, error) { return json.Marshal(v) },
		Decode: func(b []byte) (v T, err error) {
			dec := json.NewDecoder(bytes.NewReader(b))
			if err := dec.Decode(&v); err != nil {
				return v, err
			}
			if _, err := dec.Token(); err != io.EOF {
				return v, errors.New("more follows the value")
			}
			return v, nil
		},
	}
}

// Text is the codec of text, which must be UTF-8.
func Text() Codec[string] {
	valid := func(s string) error {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%.40q is not UTF-8", s)
		}
		return nil
	}
	return Codec[string]{
		Encode: func(s string) ([]byte, error) { return []byte(s), valid(s) },
		Decode: func(b []byte) (string, error) { return string(b), valid(string(b)) },
	}
}

// Bytes is the codec of bytes as they are.
func Bytes() Codec[[]byte] {
	same := func(b []byte) ([]byte, error) { return b, nil }
	return Codec[[]byte]{Encode: same, Decode: same}
}
