package metrics

import (
	"errors"
	"time"

	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
)

// Trace counts one step of a campaign. It is for [elect.Options] Trace of all elections of the
// process, and for the options of locks, queues and the other recipes. The name of the election
// becomes the label election; see [trace.Named] for another name. An election has series from its
// first step on. The terms of two handles on one election are added.
//
// Trace does not block, and is safe for concurrent use.
func (r *Recorder) Trace(ev trace.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, p, m := r.of(ev.Election), &r.process, placeOf(ev.Member)
	if ev.Recipe == "" {
		e.elects = true
	} else {
		e.recipe = ev.Recipe
	}
	e.candidacy.Trace(ev)
	switch ev.Kind {
	case trace.Joined:
		e.joined[m] = time.Now()
	case trace.Waiting:
		e.waits(m, ev.Err)
	case trace.Elected:
		e.leading++
		e.token = max(e.token, ev.Token)
		e.waits(m, nil)
		if since, ok := e.joined[m]; ok {
			r.observe(campaignSeconds, &p.campaign, campaignBounds, time.Since(since).Seconds())
		}
		delete(e.joined, m)
	case trace.Ended:
		e.leading--
		e.terms[endOf(ev.Err)]++
		if !errors.Is(ev.Err, elect.ErrResigned) { // its work had ended before
			p.overdue[m] = time.Now()
		}
	case trace.SessionLost:
		e.waits(m, nil)
	case trace.Left:
		delete(e.joined, m)
		delete(p.overdue, m)
		e.waits(m, nil)
	case trace.Retrying:
		p.retries[opOf(ev.Err)]++
	case trace.SessionOpened:
		p.ttl = ev.TTL
	case trace.Heartbeat:
		if !p.hears(ev.Number) {
			return
		}
		r.observe(heartbeatSeconds, &p.beats, heartbeatBounds, ev.RoundTrip.Seconds())
		if ev.TTL > 0 {
			r.observe(slackRatio, &p.slack, slackBounds, ev.Slack.Seconds()/ev.TTL.Seconds())
		}
	}
}

// waits notes whether a member waits behind the gate of a pause; why says so.
func (e *election) waits(m place, why error) {
	if !errors.Is(why, elect.ErrPaused) {
		delete(e.paused, m)
		return
	}
	if e.paused == nil {
		e.paused = make(map[place]bool)
	}
	e.paused[m] = true
}

// observe adds a value to h, which belongs to the family. The caller has locked r.
func (r *Recorder) observe(family string, h *Histogram, bounds []float64, v float64) {
	h.add(bounds, v)
	for f := range r.observers {
		(*f)(family, v)
	}
}
