package group

import (
	"encoding/json"
	"testing"
)

// Others may write who owned an item last. What can be read can be written, and is read the same again.
func FuzzOwner(f *testing.F) {
	for _, s := range []string{`{"id":"web-1","token":7,"since":"2026-01-01T00:00:00Z"}`, `{"since":"0000-01-01T00:00:00Z"}`, `{"token":-1}`, `null`, `{"held":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		o, err := parseOwner(value)
		if err != nil {
			return
		}
		if o.Held {
			t.Errorf("%s says that the item is owned now", value)
		}
		if y := o.Since.Year(); !o.Since.IsZero() && (y < 1970 || y > 2200) {
			t.Errorf("%s says that the item is owned since %v", value, o.Since)
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatalf("%s is read as %+v, which cannot be written: %v", value, o, err)
		}
		if again, err := parseOwner(text); err != nil || again.ID != o.ID || again.Token != o.Token || !again.Since.Equal(o.Since) {
			t.Errorf("%s is %+v, and written again %+v, %v", value, o, again, err)
		}
	})
}
