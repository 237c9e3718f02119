package metrics

import (
	"errors"
	"time"

	"github.com/succession-dev/succession/elect"
)

// Trace returns a function for [elect.Options] Trace of the election with the given name. It is
// also for the options of a lock, a queue and the other recipes. The name becomes the label
// election. From the call on there are series of the election, with nothing counted. Two handles on
// one election may share a name: their terms are added.
//
// The function does not block, and is safe for concurrent use.
func (r *Recorder) Trace(election string) func(elect.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(election)
	return func(ev elect.Event) { r.trace(election, ev) }
}

// trace counts one step of a campaign.
func (r *Recorder) trace(name string, ev elect.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, m := r.of(name), placeOf(ev.Member)
	switch ev.Kind {
	case elect.Joined:
		e.joined[m] = time.Now()
	case elect.Elected:
		e.leading++
		e.token = max(e.token, ev.Token)
		if since, ok := e.joined[m]; ok {
			r.observe(name, campaignSeconds, &e.campaign, campaignBounds, time.Since(since))
		}
		delete(e.joined, m)
	case elect.Ended:
		e.leading--
		e.terms[endOf(ev.Err)]++
		if !errors.Is(ev.Err, elect.ErrResigned) { // its work had ended before
			e.overdue[m] = time.Now()
		}
	case elect.Left:
		delete(e.joined, m)
		delete(e.overdue, m)
	case elect.Retrying:
		e.retries[opOf(ev.Err)]++
	case elect.SessionOpened:
		e.ttl = ev.TTL
	case elect.Heartbeat:
		r.observe(name, heartbeatSeconds, &e.beats, heartbeatBounds, ev.RoundTrip)
		r.observe(name, slackSeconds, &e.slack, slackBounds, ev.Slack)
	}
}

// observe adds a value to h, which belongs to the family. The caller has locked r.
func (r *Recorder) observe(election, family string, h *Histogram, bounds []float64, d time.Duration) {
	h.add(bounds, d)
	for f := range r.observers {
		(*f)(family, election, d.Seconds())
	}
}
