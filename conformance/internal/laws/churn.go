package laws

import (
	"fmt"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/internal/engine"
)

// churn is the check of Records.churn. What has changed a version is what was told of a call that succeeded.
func churn(t *engine.Trial) {
	const enough = 400 // changes; more of them find more
	name := t.Name + "-r"
	var mu sync.Mutex
	changed := make(map[backend.Version]string) // the version to what has changed it
	made := make(map[backend.Version]bool)      // by a Put that was told so
	count := map[string]int{}
	note := func(what string, at, now backend.Version) (total int) {
		mu.Lock()
		defer mu.Unlock()
		if at != backend.Absent {
			if before := changed[at]; before != "" {
				t.Never("version %d was changed twice: by %s, and by %s", at, before, what)
			}
			changed[at] = what
		}
		if now != backend.Absent {
			if made[now] {
				t.Never("version %d was given to two writes", now)
			}
			made[now] = true
		}
		count[what[2:]]++
		return len(changed)
	}
	cs := t.Clients(5)
	end := time.Now().Add(t.Soon())
	var calls []*engine.Call
	for i, c := range cs {
		s := c.Live()
		calls = append(calls, t.Go("changing the record", func() error {
			for turn := i; time.Now().Before(end); turn++ {
				r, err := s.Get(t.Ctx, name)
				if err != nil {
					return err
				}
				cond, now, what := &backend.If{Version: r.Version}, backend.Absent, "delete"
				switch {
				case r.Version == backend.Absent:
					what = "make"
					now, err = s.Put(t.Ctx, name, []byte("made"), cond)
				case turn%3 == 0:
					what = "write"
					now, err = s.Put(t.Ctx, name, []byte("written"), cond)
				default:
					err = s.Delete(t.Ctx, name, cond)
				}
				switch {
				case engine.Is(err, backend.ErrVersion):
					t.Pass(t.Tick()/8, "before the next try")
				case err != nil:
					return err
				case note(fmt.Sprintf("%s %s", c.Name, what), r.Version, now) >= enough:
					return nil
				}
			}
			return nil
		}))
	}
	for _, call := range calls {
		call.Returns(t.Limit())
	}
	v := cs[0].Put(t.Name+"-after", "", nil) // makes the session fresh
	r := cs[0].Get(name)
	for at, by := range changed {
		if !made[at] {
			t.Never("%s has changed version %d, which no write was given", by, at)
		}
		if at == r.Version {
			t.Never("the record has version %d, which %s has changed", at, by)
		}
	}
	there := 0
	if r.Version != backend.Absent {
		there = 1
	}
	if count["make"] != count["delete"]+there {
		t.Never("the record was made %d times and deleted %d times; %d are there (version %d)", count["make"], count["delete"], there, v)
	}
}
