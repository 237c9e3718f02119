package zookeeper

import (
	"testing"

	"github.com/go-zookeeper/zk"
)

// Answers of a broken server or proxy are not taken apart.
func TestStrangeAnswers(t *testing.T) {
	ops := []any{check("/m"), &zk.SetDataRequest{Path: "/r"}}
	for name, tt := range map[string]struct {
		results []zk.MultiResponse
		ok      bool
	}{
		"right":                {[]zk.MultiResponse{{}, {Stat: new(zk.Stat)}}, true},
		"nothing":              {nil, false},
		"one result less":      {[]zk.MultiResponse{{Stat: new(zk.Stat)}}, false},
		"one result more":      {[]zk.MultiResponse{{}, {Stat: new(zk.Stat)}, {}}, false},
		"a write with no stat": {[]zk.MultiResponse{{}, {}}, false},
	} {
		if got := answers(tt.results, ops); got != tt.ok {
			t.Errorf("%s: %v, want %v", name, got, tt.ok)
		}
	}
}
