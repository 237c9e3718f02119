package local

import (
	"errors"
	"strings"
	"testing"
)

// Where there is no Linux, the error says what to use.
func TestUnsupported(t *testing.T) {
	err := unsupported("plan9")
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "plan9") || !strings.Contains(err.Error(), "etcd://127.0.0.1:2379/app") {
		t.Error(err)
	}
}
