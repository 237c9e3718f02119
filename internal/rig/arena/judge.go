//go:build linux

package arena

import (
	"time"

	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/history"
)

// The rules of [Arena.FailSince] that are about time.
const (
	Stuck    history.Rule = "stuck"    // somebody leads in time
	Unclosed history.Rule = "unclosed" // who ends in good order can still tell the coordinator, and stands nowhere then
)

// CloseLimit is how long drivers wait for the coordinator when they are closed.
const CloseLimit = 2 * time.Second

// Judged divides what was found. What a busy machine may have made is not judged: a violation of a rule about time, at a time that was
// disturbed. Judged says so of each. The rules about time are the keys of spare, which has what their bounds leave to the
// machine: that a leader was told late leaves nothing. All else must never happen.
func (a *Arena) Judged(found []history.Violation, spare map[history.Rule]time.Duration) (judged, notJudged []history.Violation) {
	origin := time.Now().Add(-a.Now())
	for _, v := range found {
		d, timed := spare[v.Rule]
		r := a.monitor.Between(origin.Add(v.From), origin.Add(v.To))
		if r.Limit = calm.Limit(d); timed && r.Disturbed() {
			a.Say("calm: not judged: %v: %v", v, r)
			notJudged = append(notJudged, v)
		} else {
			judged = append(judged, v)
		}
	}
	return judged, notJudged
}
