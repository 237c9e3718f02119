package metrics

import (
	"errors"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
)

// Trace counts one step of a campaign. It is for [elect.Options] Trace of all elections of the process, and for the
// options of locks, queues and the other recipes. The name of the election becomes the label election, see [trace.Named]
// for another; from its first step on there are its series. The terms of two handles on one election are added.
//
// Trace does not block, and is safe for concurrent use.
func (r *Recorder) Trace(ev trace.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := ev.Election
	e, m := r.of(name), placeOf(ev.Member)
	switch ev.Kind {
	case trace.Joined:
		e.joined[m] = time.Now()
	case trace.Elected:
		e.leading++
		e.token = max(e.token, ev.Token)
		if since, ok := e.joined[m]; ok {
			r.observe(name, campaignSeconds, &e.campaign, campaignBounds, time.Since(since))
		}
		delete(e.joined, m)
	case trace.Ended:
		e.leading--
		e.terms[endOf(ev.Err)]++
		if !errors.Is(ev.Err, elect.ErrResigned) { // its work had ended before
			e.overdue[m] = time.Now()
		}
	case trace.Left:
		delete(e.joined, m)
		delete(e.overdue, m)
	case trace.Retrying:
		e.retries[opOf(ev.Err)]++
	case trace.SessionOpened:
		e.ttl = ev.TTL
	case trace.Heartbeat:
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
