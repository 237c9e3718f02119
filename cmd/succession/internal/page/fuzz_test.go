package page

import (
	"bytes"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// Whoever may act sends what they like. What is done is done to an election that can be, and to a term that was named.
func FuzzWish(f *testing.F) {
	for _, s := range []string{`{"name":"reports","token":"7"}`, `{"name":"../x"}`, `{"name":"a","token":"0"}`, `{"name":"a","by":"x"}`, `null`, `{}{}`, `{"token":"-1"}`} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, named bool) {
		v, err := readWish(bytes.NewReader(body), named)
		if err == nil && (backend.CheckName(v.Name) != nil || named && v.token == 0 || v.by != "") {
			t.Errorf("%s is taken for %+v", body, v)
		}
	})
}
