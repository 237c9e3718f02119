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
		last, _ := work(elected, func() bool { return time.Now().Before(end) }, nil)
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
				last, _ := work(elected, func() bool {
					asked++
					switch asked {
					case 5:
						time.Sleep(time.Minute)
						return after
					case 6:
						return false
					}
					return true
				}, nil)
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
	if last, _ := work(elected, func() bool { return false }, nil); !last.Equal(elected) {
		t.Errorf("the last act was at %v, want the election at %v", last, elected)
	}
}

// A leader that is told to leave has not lost, whether or not it asks.
func TestWorkLeaves(t *testing.T) {
	yes := func() bool { return true }
	for name, leads := range map[string]func() bool{"asks": yes, "does not ask": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				elected := time.Now()
				leave := make(chan struct{})
				time.AfterFunc(10*workPause+1, func() { close(leave) })
				last, leaves := work(elected, leads, leave)
				want := 10 * workPause
				if leads == nil {
					want = 0
				}
				if !leaves || last.Sub(elected) != want {
					t.Errorf("it left: %v, and the last act was %v after the election, want %v", leaves, last.Sub(elected), want)
				}
			})
		})
	}
}
