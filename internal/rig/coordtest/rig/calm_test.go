package rig

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestCalm(t *testing.T) {
	tests := []struct {
		name string
		busy time.Duration // how long the machine is
		want time.Duration // when the rule begins
	}{
		{"idle", 0, time.Second},
		{"busy at first", 3 * time.Second, 4 * time.Second},
		{"busy for good", time.Hour, patience},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looking = make(chan struct{}, 1) // of this bubble
				began := time.Now()
				calm(t.Context(), func() time.Duration {
					time.Sleep(time.Second)
					if time.Since(began) <= tt.busy {
						return 2 * bearable
					}
					return bearable / 2
				})
				if took := time.Since(began); took != tt.want {
					t.Errorf("began after %v, want %v", took, tt.want)
				}
			})
		})
	}
}

func TestCalmEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looking = make(chan struct{}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began := time.Now()
		calm(ctx, func() time.Duration { time.Sleep(time.Second); return time.Hour })
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("returned after %v, want 2s", took)
		}
	})
}
