package barrier

import (
	"reflect"
	"testing"

	"github.com/succession-dev/succession/backend"
)

// Others may write the record. One that can be read is read the same when it was written again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"rounds":[{"a":1,"b":2}],"forgotten":7}`, `{"rounds":null}`, `{"rounds":[null]}`, `{"rounds":[{"a":-1}]}`, `{}{}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		o, err := parse(backend.Record{Name: "start-open", Version: 1, Value: value})
		if err != nil {
			return
		}
		next := o.with(round{"c": 1 << 50}, []backend.Member{{Key: "m", Position: 9, Value: "x\n" + part{n: 2, id: "a"}.String()}})
		again, err := parse(backend.Record{Name: "start-open", Version: 2, Value: next.encode()})
		if err != nil || !reflect.DeepEqual(next, again) || again.of("c") == nil {
			t.Errorf("%s is continued as %+v, and read as %+v, %v", value, next, again, err)
		}
	})
}
