package consul

import (
	"slices"
	"testing"
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
