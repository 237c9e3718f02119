package elect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	virtual "github.com/succession-dev/succession/internal/rig/bubble"
	"github.com/succession-dev/succession/memory"
)

// Leaders and operators keep what a later version has written into the header. Where it says that a leader must know of it, nobody of
// this version stands in the line.
func TestLater(t *testing.T) {
	virtual.Run(t, func(t *testing.T, c *memory.Coordinator) {
		b := virtual.Client(t, c, "a")
		s := virtual.Must[backend.Session](t)(b.Session(t.Context()))
		const later = `"later":{"weights":[1,2]}`
		virtual.Must[backend.Version](t)(s.Put(t.Context(), "e", []byte(`{"succession":2,"notes":{`+later+`}}`), nil))
		header := func() string { return string(virtual.Must[backend.Record](t)(s.Get(t.Context(), "e")).Value) }
		e := elect.New(b, "e", &elect.Options{ID: "a", Priority: 2, Ready: func(context.Context) error { return nil }})
		term := virtual.Must[*elect.Term](t)(e.Campaign(t.Context()))
		was := `{"succession":2}`
		for _, act := range []struct {
			name string
			do   func() error
		}{
			{"Campaign", func() error { return nil }},
			{"Acknowledge", func() error { return term.Acknowledge(t.Context()) }},
			{"RaiseFence", func() error { return operate.New(b, "e", "").RaiseFence(t.Context(), 100) }},
		} {
			if err := act.do(); err != nil {
				t.Fatalf("%s: %v", act.name, err)
			}
			now := header()
			if !strings.Contains(now, later) || now == was {
				t.Errorf("%s has made %s of %s", act.name, now, was)
			}
			was = now
		}
		if err := term.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}

		virtual.Must[backend.Version](t)(s.Put(t.Context(), "e", []byte(`{"succession":2,"needs":"weights"}`), nil))
		began := time.Now()
		err := e.Run(t.Context(), func(context.Context, *elect.Term) error { t.Error("it leads"); return nil })
		if !errors.Is(err, backend.ErrHeader) || !strings.Contains(err.Error(), "weights") || time.Since(began) > virtual.TTL {
			t.Errorf("Run of who does not know what is needed: %v, after %v", err, time.Since(began))
		}
		if l := virtual.Must[elect.State](t)(e.State(t.Context())); !l.Vacant() {
			t.Errorf("%+v stands", l)
		}
	})
}
