package candidate

import (
	"testing"
	"testing/synctest"
	"time"
)

// The last act is the last asking that was answered with yes.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elected := time.Now()
		end := elected.Add(100*time.Millisecond + 1)
		last := work(elected, func() bool { return time.Now().Before(end) })
		if got := last.Sub(elected); got != 100*time.Millisecond {
			t.Errorf("the last act was %v after the election, want 100ms", got)
		}
	})
}

// A process that is stopped while it asks acts before the stop, whatever it is told afterwards.
func TestWorkStopped(t *testing.T) {
	for name, after := range map[string]bool{"yes": true, "no": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				elected := time.Now()
				asked := 0
				last := work(elected, func() bool {
					asked++
					switch asked {
					case 5:
						time.Sleep(time.Minute)
						return after
					case 6:
						return false
					}
					return true
				})
				want := 4 * workPause
				if !after {
					want -= workPause
				}
				if got := last.Sub(elected); got != want {
					t.Errorf("the last act was %v after the election, want %v", got, want)
				}
			})
		})
	}
}

func TestWorkLostAtOnce(t *testing.T) {
	elected := time.Now()
	if last := work(elected, func() bool { return false }); !last.Equal(elected) {
		t.Errorf("the last act was at %v, want the election at %v", last, elected)
	}
}
