package value_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/value"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		of   value.Of
		says string // empty if nothing is wrong
	}{
		{value.Of{}, ""},
		{value.Of{ID: "web-1", Text: "a\nb", Rank: value.Rank{Priority: -1, Site: "north"}}, ""},
		{value.Of{ID: "ops", Text: "a new disk", Gate: true}, ""},
		{value.Of{ID: "web\n1"}, "more than one line"},
		{value.Of{ID: "web-1", Rank: value.Rank{Site: "a\rb"}}, "more than one line"},
		{value.Of{ID: "web-1", Text: "a\x1eb"}, "U+001E"},
		{value.Of{ID: "web-1", Rank: value.Rank{Site: strings.Repeat("x", value.MaxSite+1)}}, "at most 255"},
		{value.Of{ID: "web-1", Text: strings.Repeat("x", backend.MaxValue)}, "member value"},
		{value.Of{ID: "\xff"}, "UTF-8"},
	} {
		switch err := tt.of.Check(); {
		case tt.says == "" && err != nil:
			t.Errorf("%.60q: %v", tt.of, err)
		case tt.says != "" && (!errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%.60q: %v; want ErrInvalid with %q", tt.of, err, tt.says)
		case err == nil && value.Parse(tt.of.String()) != tt.of:
			t.Errorf("%q is read as %+v", tt.of.String(), value.Parse(tt.of.String()))
		}
	}
}

// Whoever may stand in a line chooses what its member says. What is taken apart is put together again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "web-1", "web-1\naddr=:80", "web-1\n\x1e{\"priority\":7,\"site\":\"north\"}", "web-1\nv\n\x1e{", "\n\x1e", "a\nb\nc\n\x1e{\"p\":1}\n\x1e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o := value.Parse(s)
		if again := value.Parse(o.String()); again != o {
			t.Errorf("%q is %+v, and put together again %+v", s, o, again)
		}
	})
}
