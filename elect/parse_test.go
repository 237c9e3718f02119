package elect

import (
	"reflect"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/past"
)

// Every candidate may write the history. One that can be read can be continued, and read again.
func FuzzParseHistory(f *testing.F) {
	f.Add([]byte(`{"history":1,"terms":[{"token":7,"id":"a","began":"2024-05-06T07:08:09Z","ended":"2024-05-06T07:09:09Z","why":"resigned"}]}`))
	f.Add([]byte(`{"history":1,"terms":[{"began":"9999-12-31T23:59:59-23:59"},{"began":"0000-01-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"history":2}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		terms, err := past.Parse(backend.Record{Name: "e.history", Version: 1, Value: value})
		if err != nil {
			return
		}
		next := past.Term{Token: 1 << 40, ID: "b", Began: time.Unix(1<<31, 0).UTC()}
		b := past.Encode(recorded(terms, next), 10)
		again, err := past.Parse(backend.Record{Name: "e.history", Version: 2, Value: b})
		if err != nil || len(again) == 0 {
			t.Fatalf("%s is continued as %s, which is read as %d terms, %v", value, b, len(again), err)
		}
		if b2 := past.Encode(again, 10); !reflect.DeepEqual(b, b2) {
			t.Errorf("%s is written again as %s", b, b2)
		}
	})
}
