package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// Where the kernel cannot be a coordinator, there is something to see all the same.
func TestAnywhere(t *testing.T) {
	var out strings.Builder
	d := &demo{url: "local:/tmp/demo", n: 3, out: &out, form: ui.AsText, open: func(context.Context, string) (backend.Backend, error) {
		return nil, fmt.Errorf("%w: this is plan9", errors.ErrUnsupported)
	}}
	d.anywhere()
	if err := d.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3 candidates in line on memory:\n", "3 leaders, one after the other. The tokens grew. 2 exits woke 2 candidates: one each.\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}
