package page

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
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

// What a page is told is what the command would print: no text has a character that is not seen.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "web-1", "web\u202e1-\u200b", `\u202e \\u202e \" \`, "a\nb\tc\u2028\x7f\x00", "<b>&amp;</b>", "\U000E0001 \U0001F600", "\xff\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, said string) {
		var told map[string]string
		text, err := json.Marshal(map[string]string{"id": said})
		if err == nil {
			err = json.Unmarshal(visible(text), &told)
		}
		if want := ui.Visible(strings.ToValidUTF8(said, "\ufffd")); err != nil || strings.ToValidUTF8(told["id"], "") != told["id"] || !same(told["id"], want) {
			t.Errorf("%q is told as %q, %v; want %q", said, told["id"], err, want)
		}
	})
}

// same compares texts, of which one has a replacement for each byte of a broken character, and the other one for all.
func same(a, b string) bool {
	runs := regexp.MustCompile("\ufffd+")
	return runs.ReplaceAllString(a, "\ufffd") == runs.ReplaceAllString(b, "\ufffd")
}
