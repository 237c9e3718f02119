package kit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// Why a session has ended is no answer to a call on it: it can be read, and only what holds for every later call is matched.
func TestSessionEnded(t *testing.T) {
	kept := []error{backend.ErrReset, backend.ErrClosed, backend.ErrUnavailable}
	other := []error{backend.ErrDenied, backend.ErrInvalid, backend.ErrNotMember, backend.ErrVersion, backend.ErrTaken, backend.ErrSealed, backend.ErrHeader, errors.ErrUnsupported}
	for i, why := range append(append([]error{}, kept...), other...) {
		err := kit.SessionEnded(fmt.Errorf("a renewal: %w", why))
		if !errors.Is(err, backend.ErrSessionEnded) || errors.Is(err, why) != (i < len(kept)) {
			t.Errorf("%v matches wrongly", err)
		}
		if !strings.HasPrefix(err.Error(), "session ended: a renewal: ") || !strings.Contains(err.Error(), why.Error()) {
			t.Errorf("it says %q", err)
		}
		if again := kit.SessionEnded(err); again != err {
			t.Errorf("%v and %v are two", again, err)
		}
	}
	if text := kit.SessionEnded(fmt.Errorf("%w: by an operator", backend.ErrSessionEnded)).Error(); text != "session ended: by an operator" {
		t.Errorf("it says %q", text)
	}
	if text := kit.SessionEnded(nil).Error(); text != "session ended" {
		t.Errorf("without a reason it says %q", text)
	}
	var as *backend.SealedError
	if errors.As(kit.SessionEnded(&backend.SealedError{To: "x"}), &as) {
		t.Error("it is a SealedError")
	}
}
