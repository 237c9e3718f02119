package local_test

import (
	"testing"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// A survey says what is read line by line.
func TestSurvey(t *testing.T) {
	t.Parallel()
	b, err := succession.Open("local:" + t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	rig.CheckSurvey(t, b)
}
