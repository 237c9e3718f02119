package rig

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
)

// Joins has s join one line after the other, whose names begin with name, until stop is
// called, which returns the members. Each must succeed.
func Joins(t *testing.T, s backend.Session, name string) (stop func() []backend.Member) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	result := make(chan []backend.Member, 1)
	go func() {
		var members []backend.Member
		for n := 0; ctx.Err() == nil; n++ {
			m, err := s.Join(t.Context(), fmt.Sprintf("%s-%d", name, n), "x")
			if err != nil {
				t.Errorf("Join: %v", err)
				break
			}
			members = append(members, m)
			time.Sleep(10 * time.Millisecond) // the pace: the caller looks at every member
		}
		result <- members
	}()
	return func() []backend.Member {
		cancel()
		members := <-result
		t.Logf("%d have joined meanwhile", len(members))
		return members
	}
}
