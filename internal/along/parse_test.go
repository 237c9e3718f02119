package along

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/naming"
)

// Others may write the list of records that move. What is believed of it can be carried over, is not too much, and is read the
// same when it has been written again.
func FuzzList(f *testing.F) {
	for _, s := range []string{
		`{"election":"e","records":["a","e-position"]}`, `{"election":"e","records":["b","a","a","/x","../..","e.migrate-home"],"more":true}`,
		`{"election":"other","records":["a"]}`, `{"election":"e","records":null}`, `{"election":"e","records":"a"}`, `null`, ``,
		`{"election":"e","records":[` + many(maxGuarded+1) + `]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		g, ours := parseList(value, "e")
		if g.Election != "e" || !ours && len(g.Records) > 0 || len(g.Records) > maxGuarded || !slices.IsSorted(g.Records) {
			t.Fatalf("%s is read as %+v, %t", value, g, ours)
		}
		for _, name := range g.Records {
			if _, _, kept := naming.Kept(name); kept || backend.CheckName(name) != nil {
				t.Errorf("of %s the record %q is carried over", value, name)
			}
		}
		longer := g.With("a", "zz")
		again, ours := parseList(longer.encode(), "e")
		if !ours || !slices.Equal(again.Records, longer.Records) || again.More != longer.More {
			t.Errorf("%s is continued as %+v, and read as %+v, %t", value, longer, again, ours)
		}
	})
}

func many(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%q", fmt.Sprint("r", i)))
	}
	return strings.Join(names, ",")
}

// Others may write the note of a record. One that counts is of that record, and is read the same when it has been written again.
func FuzzNote(f *testing.F) {
	for _, s := range []string{`{"record":"r","election":"e","migration":"1"}`, `{"record":"other","election":"e"}`, `{"record":"r","election":7}`, `[]`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		n := parseNote(value, "r")
		if n != (Note{}) && n.Record != "r" {
			t.Fatalf("%s is read as %+v", value, n)
		}
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		if again := parseNote(text, n.Record); !reflect.DeepEqual(again, n) {
			t.Errorf("%s is %+v, and written again %+v", value, n, again)
		}
	})
}
