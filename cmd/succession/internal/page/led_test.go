package page_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// oneByOne tells one line at a time, and does not answer of the line silent.
type oneByOne struct {
	backend.Backend
	silent string
}

func (b oneByOne) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	return oneByOneSession{s, b.silent}, err
}

type oneByOneSession struct {
	backend.Session
	silent string
}

func (oneByOneSession) Survey(context.Context) (map[string]backend.Standing, error) {
	return nil, errors.ErrUnsupported
}

func (s oneByOneSession) Head(ctx context.Context, line string) (backend.Line, error) {
	if line == s.silent {
		<-ctx.Done()
		return backend.Line{}, context.Cause(ctx)
	}
	return s.Session.Head(ctx, line)
}

// Who leads is told of all elections or of none: also where the time ends while they are read, one by one, and where they are many.
func TestLed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.New(&memory.Options{TTL: time.Minute})
		b := c.Client("web-3")
		defer b.Close()
		for _, name := range []string{"aa", "zz"} {
			if _, err := elect.New(b, name, &elect.Options{ID: "web-3"}).Campaign(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		want := []page.Leading{{Name: "aa", ID: "web-3"}, {Name: "zz", ID: "web-3"}}
		if all, err := page.Led(t.Context(), oneByOne{b, ""}); err != nil || !slices.Equal(all, want) {
			t.Errorf("%v, %v; want %v", all, err, want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if all, err := page.Led(ctx, oneByOne{b, "zz"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before all were read: %v, %v; want the end of the context", all, err)
		}

		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10_000 {
			if _, err := s.Put(t.Context(), fmt.Sprintf("many/%05d", i), backend.Header{Fence: 1}.Encode(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if all, err := page.Led(t.Context(), b); err != nil || !slices.Equal(all, want) {
			t.Errorf("of many: %v, %v; want %v", all, err, want)
		}

		if _, err := s.Put(t.Context(), "newer", []byte(`{"succession":1000000}`), nil); err != nil {
			t.Fatal(err)
		}
		if all, err := page.Led(t.Context(), b); err == nil {
			t.Errorf("where one cannot be read: %v", all)
		}
	})
}
