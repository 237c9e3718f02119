package candidate

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A zkLock elects with the Lock of go-zookeeper. Lock itself never tells that it was lost. What
// an application can ask is a flag that it keeps itself, by the events of its connection:
// StateExpired, the end of the session, which comes when the client is connected again, or
// StateDisconnected, which comes earlier and often for nothing. Each is measured as a candidate
// of its own.
type zkLock struct {
	conn *zk.Conn
	heed zk.State

	mu   sync.Mutex
	lost chan struct{} // closed by the event, and made anew for each term
}

func zkLockExpired(_ context.Context, s Settings) (func(string) Elector, error) {
	return newZKLock(s, zk.StateExpired)
}

func zkLockDisconnected(_ context.Context, s Settings) (func(string) Elector, error) {
	return newZKLock(s, zk.StateDisconnected)
}

func newZKLock(s Settings, heed zk.State) (func(string) Elector, error) {
	l := &zkLock{heed: heed, lost: make(chan struct{})}
	var err error
	l.conn, err = zkConnect(s, func(e zk.Event) {
		if e.Type == zk.EventSession && e.State == l.heed {
			l.lose()
		}
	})
	if err != nil {
		return nil, err
	}
	return func(election string) Elector {
		return func(context.Context) (Term, error) { return l.elect("/" + election) }
	}, nil
}

// zkConnect returns a connection that has its session, and tells of its events; tell may be nil.
func zkConnect(s Settings, tell func(zk.Event)) (*zk.Conn, error) {
	connected := make(chan struct{})
	var once sync.Once
	conn, _, err := zk.Connect(s.Addresses, s.Session, zk.WithLogInfo(false), zk.WithEventCallback(func(e zk.Event) {
		if e.State == zk.StateHasSession {
			once.Do(func() { close(connected) })
		}
		if tell != nil {
			tell(e)
		}
	}))
	if err == nil {
		<-connected
	}
	return conn, err
}

func (l *zkLock) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.lost)
	l.lost = make(chan struct{})
}

func (l *zkLock) elect(path string) (Term, error) {
	lock := zk.NewLock(l.conn, path, zk.WorldACL(zk.PermAll))
	if err := lock.Lock(); err != nil {
		return Term{}, err
	}
	l.mu.Lock()
	lost := l.lost
	l.mu.Unlock()
	return Term{Leads: func() bool { return open(lost) }, Release: func(bool) error {
		for {
			err := lock.Unlock()
			if err != zk.ErrNoServer { // not sent
				return err
			}
			time.Sleep(retryPause)
		}
	}}, nil
}
