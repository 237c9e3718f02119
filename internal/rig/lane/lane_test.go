package lane_test

import (
	"os"
	"strings"
	"testing"

	"github.com/succession-dev/succession/internal/rig/lane"
)

// A test keeps what is done to it.
type test struct {
	testing.TB
	said string
}

func (t *test) Helper()                   {}
func (t *test) Skip(args ...any)          { t.said = args[0].(string) }
func (t *test) Fatalf(f string, _ ...any) { t.said = f }

// By itself, go test runs all but what is for ./test all. The test runner looks for the beginnings of these messages.
func TestLanes(t *testing.T) {
	const putOff, unseen = "lane: only in ./test all", "lane: the test runner did not see"
	for _, tt := range []struct {
		name string
		call func(testing.TB)
		env  string
		says string
	}{
		{"all", lane.All, "", putOff},
		{"all", lane.All, "SUCCESSION_TESTS=all", ""},
		{"real", lane.Real, "", ""},
		{"real", lane.Real, "SUCCESSION_LANE=unraced", unseen},
		{"real", lane.Real, "SUCCESSION_LANE=real unraced", ""},
		{"unraced", lane.Unraced, "", ""},
		{"unraced", lane.Unraced, "SUCCESSION_LANE=", unseen},
		{"unraced", lane.Unraced, "SUCCESSION_LANE=unraced", ""},
	} {
		t.Run(tt.name+" "+tt.env, func(t *testing.T) {
			for _, name := range []string{"SUCCESSION_TESTS", "SUCCESSION_LANE"} {
				t.Setenv(name, "") // so that it is restored
				os.Unsetenv(name)
			}
			if name, value, ok := strings.Cut(tt.env, "="); ok {
				os.Setenv(name, value)
			}
			var got test
			if tt.call(&got); got.said != tt.says && (tt.says == "" || !strings.HasPrefix(got.said, tt.says)) {
				t.Errorf("it says %q, want %q", got.said, tt.says)
			}
		})
	}
}
