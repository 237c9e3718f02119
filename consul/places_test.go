package consul

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What tells a leader that it was removed gets the first place that is free, and then the others that wait for a
// member.
func TestLeadersGetPlacesFirst(t *testing.T) {
	o, err := new(Options).filled()
	if err != nil {
		t.Fatal(err)
	}
	leads := &waiter{lost: func(error) {}}
	leads.watched.Position = 3
	s := &session{
		b:       &Backend{o: o, c: &client{}},
		queued:  make(chan struct{}, 1),
		waiters: map[string][]*waiter{"led": {leads}},
	}
	for range maxQueries {
		s.b.c.places.take(topic{member: 1}, o)
	}
	for _, on := range []topic{{key: "record"}, {key: "waits", member: 2}, {key: "led", member: 3}} {
		s.queue = append(s.queue, &query{on: on, turn: make(chan struct{})})
	}
	queue := slices.Clone(s.queue)
	for _, i := range []int{2, 1} {
		s.b.c.places.taken--
		if s.admit(); !queue[i].admitted {
			t.Errorf("a place was free, and %+v did not get it", queue[i].on)
		}
	}
}

// One refusal when the process has few queries does not leave it with few for long.
func TestPlacesAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := new(Options).filled()
		if err != nil {
			t.Fatal(err)
		}
		var p places
		p.take(topic{member: 1}, o)
		p.full(o)
		if p.most < minBurst/2 {
			t.Errorf("the first query was refused, and there are %d places, want some", p.most)
		}
		for range 20 { // as if somebody asked now and then
			time.Sleep(o.wait() + time.Second)
			if p.take(topic{member: 1}, o) {
				p.give(time.Time{})
			}
		}
		if p.most != maxQueries {
			t.Errorf("no query was refused for 20 times as long as one takes, and there are %d places, want %d", p.most, maxQueries)
		}
	})
}

// A process whose connections break now and then may have as many queries as it needs, and not as at the
// first break.
func TestPlacesAfterBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := new(Options).filled()
		if err != nil {
			t.Fatal(err)
		}
		var p places
		ask := func() { // as if 60 waited
			for p.taken < 60 && p.take(topic{member: 1}, o) {
			}
		}
		p.take(topic{member: 1}, o)
		p.broke(o)
		if ask(); p.taken != minBurst {
			t.Errorf("%d queries are sent soon after a break, want %d", p.taken, minBurst)
		}
		for range 2 { // more often than a query takes
			time.Sleep(o.longest() * 3 / 4)
			ask()
			p.broke(o)
		}
		if ask(); p.taken < 60 {
			t.Errorf("a while after the first break %d queries are sent, want 60", p.taken)
		}
	})
}
