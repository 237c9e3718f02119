package demo

import (
	"strings"
	"testing"
)

// The table must be able to say that the election did not behave.
func TestTableAccuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"tokens fall", []step{{who: 1, kind: leads, token: 2}, {who: 1, kind: leaves}, {who: 2, kind: wakes}, {who: 2, kind: leads, token: 1}}, "tokens must grow"},
		{"a herd", []step{{who: 1, kind: leads, token: 1}, {who: 1, kind: leaves}, {who: 2, kind: wakes}, {who: 2, kind: wakes}, {who: 2, kind: leads, token: 2}}, "each must wake one"},
		{"one never led", []step{{who: 1, kind: leads, token: 1}}, "a session was lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			table := newTable(&out, 2, "memory:x")
			for _, s := range tt.steps {
				table.add(s)
			}
			if err := table.sum(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("sum returns %v, want an error with %q", err, tt.want)
			}
		})
	}
}
