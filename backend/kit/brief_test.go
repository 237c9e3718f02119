package kit_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend/kit"
)

// What a server says at length is cut in an error, and the error is still found.
func TestBrief(t *testing.T) {
	short := errors.New("no leader")
	if got := kit.Brief(short); got != short {
		t.Errorf("a short one is %v", got)
	}
	if kit.Brief(nil) != nil {
		t.Error("nil is an error")
	}
	long := fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, strings.Repeat("ä", 1<<20))
	got := kit.Brief(long)
	if !errors.Is(got, io.ErrUnexpectedEOF) || len(got.Error()) > 2000 || !strings.HasSuffix(got.Error(), "(2097168 bytes in all)") || strings.ToValidUTF8(got.Error(), "?") != got.Error() {
		t.Errorf("a long one is %.100v, of %d bytes", got, len(got.Error()))
	}
}
