package choice_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect/internal/choice"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/internal/unready"
	"github.com/succession-dev/succession/internal/value"
)

var at = time.UnixMilli(1_000_000)

// Every line of up to four candidates, each with or without priority, at the site of the last leader or not, ready or not, and with a
// wish for one of them or none. Whoever is first does what it is told until one leads or waits. It comes to
// an end, after each has given way once at most, and with the one who is to lead.
func TestEveryLine(t *testing.T) {
	const kinds = 8 // priority, site, readiness
	lines := 0
	for n := 1; n <= 4; n++ {
		for code := range int(math.Pow(kinds, float64(n))) {
			all := make([]candidate, n)
			for i := range all {
				kind := code / int(math.Pow(kinds, float64(i))) % kinds
				all[i] = candidate{name: fmt.Sprint(i), ready: kind&1 == 0, Rank: value.Rank{Priority: kind >> 1 & 1}}
				if kind&4 != 0 {
					all[i].Site = "here"
				}
			}
			for wish := range n + 1 {
				lines++
				if err := settles(all, wish); err != "" {
					t.Fatalf("%+v, with a wish for %d: %s", all, wish, err)
				}
			}
		}
	}
	t.Logf("%d lines", lines)
}

type candidate struct {
	name     string
	position uint64
	ready    bool
	value.Rank
}

// settles lets the line settle, and says what is wrong with the end. A wish of i+1 is for all[i]; 0 is none.
func settles(all []candidate, wish int) string {
	line := slices.Clone(all)
	for i := range line {
		line[i].position = uint64(i + 1)
	}
	h := header.Header{Choice: header.Choice{Site: "here"}}
	if wish > 0 {
		h.Choice.Wish = header.Wish{Position: uint64(wish), Until: at.Add(time.Minute).UnixMilli()}
	}
	for next := uint64(len(line)) + 1; next <= uint64(2*len(line))+1; next++ {
		v := choice.View{Line: header.Line{Header: h}, Unready: unready.Positions{}, At: at}
		for _, c := range line {
			v.Line.Members = append(v.Line.Members, member(c))
			v.Unready[c.position] = !c.ready
		}
		me := line[0]
		switch is := v.Of(member(me), me.ready, me.Rank); is.Act {
		case choice.Lead:
			return wrong(all, wish, me)
		case choice.Wait:
			if slices.ContainsFunc(all, func(c candidate) bool { return c.ready }) {
				return me.name + " waits, and one is ready"
			}
			return ""
		case choice.Yield:
			if is.To.Position == me.position || is.Why == "" {
				return fmt.Sprintf("%s yields to %v: %q", me.name, is.To, is.Why)
			}
			me.position = next // it joins again
			line = append(slices.Clone(line[1:]), me)
		}
	}
	return "it does not come to an end"
}

// wrong says what is wrong with c as the leader.
func wrong(all []candidate, wish int, c candidate) string {
	if !c.ready {
		return c.name + " leads and is not ready"
	}
	if wish > 0 && all[wish-1].ready {
		if c.name != all[wish-1].name {
			return c.name + " leads in spite of the wish"
		}
		return ""
	}
	for _, o := range all {
		if o.ready && (o.Priority > c.Priority || o.Priority == c.Priority && o.Site != "" && c.Site == "") {
			return fmt.Sprintf("%s leads, and %s is better", c.name, o.name)
		}
	}
	return ""
}

func member(c candidate) backend.Member {
	return backend.Member{
		Line: "e", Key: c.name, Position: c.position,
		Value: value.Of{ID: c.name, Rank: c.Rank}.String(),
	}
}

// A pause comes before everything, and only by a gate that stands.
func TestPause(t *testing.T) {
	m := member(candidate{name: "0", position: 1})
	gate := backend.Member{Line: "e", Key: "g", Position: 2, Pinned: true, Value: value.Of{ID: "anna", Text: "kernel"}.String()}
	v := choice.View{Line: header.Line{Members: []backend.Member{m, gate}, Header: header.Header{Choice: header.Choice{Gate: 2}}}, At: at}
	want := choice.Verdict{Act: choice.Yield, To: gate, Why: "anna has paused the election: kernel"}
	if got := v.Of(m, true, value.Rank{}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	reader := m
	reader.Shared = true
	if got := v.Of(reader, true, value.Rank{}); got != want {
		t.Errorf("a reader: got %+v, want %+v", got, want)
	}
	v.Line.Members = v.Line.Members[:1]
	if got := v.Of(m, true, value.Rank{}); got.Act != choice.Lead {
		t.Errorf("without the gate: got %+v", got)
	}
}

// Whoever may write the header may wish what they like. A wish that would hold for longer than any can is none.
func TestWishOfOthers(t *testing.T) {
	for until, want := range map[time.Duration]bool{-time.Second: false, time.Hour: true, header.MaxWish: true, 3 * header.MaxWish: false, 1 << 62: false} {
		if got := choice.Wished(header.Wish{Key: "m", Position: 7, Until: at.Add(until).UnixMilli()}, at); got != want {
			t.Errorf("a wish until in %v counts: %t", until, got)
		}
	}
	for _, until := range []int64{math.MaxInt64, math.MinInt64} {
		if choice.Wished(header.Wish{Key: "m", Position: 7, Until: until}, at) {
			t.Errorf("a wish until %d counts", until)
		}
	}
}

// What a member is told in a line, and why.
func TestVerdicts(t *testing.T) {
	says := func(key string, position uint64, priority int, site string) backend.Member {
		return backend.Member{Key: key, Position: position, Value: value.Of{ID: key, Rank: value.Rank{Priority: priority, Site: site}}.String()}
	}
	plain := says("m", 5, 1, "")
	pinned := says("pinned", 6, 9, "")
	pinned.Pinned = true
	shared := says("shared", 6, 0, "")
	shared.Shared = true
	wish := func(position uint64, until time.Time) header.Choice {
		return header.Choice{Wish: header.Wish{Position: position, Until: until.UnixMilli()}}
	}
	for _, tt := range []struct {
		name    string
		line    []backend.Member
		h       header.Choice
		unready bool
		own     value.Rank
		act     choice.Act
		to, why string
	}{
		{name: "alone", line: []backend.Member{plain}, own: value.Rank{Priority: 1}, act: choice.Lead},
		{name: "a larger priority", line: []backend.Member{plain, says("x", 6, 2, ""), says("y", 7, 2, "")}, own: value.Rank{Priority: 1},
			act: choice.Yield, to: "x", why: "priority 2, and this one 1"},
		{name: "the largest priority", line: []backend.Member{plain, says("x", 6, 2, ""), says("y", 7, 3, "")}, own: value.Rank{Priority: 1}, act: choice.Yield, to: "y", why: "priority 3"},
		{name: "the same priority", line: []backend.Member{plain, says("x", 6, 1, "")}, own: value.Rank{Priority: 1}, act: choice.Lead},
		{name: "in the site", line: []backend.Member{plain, says("x", 6, 1, "here")}, h: header.Choice{Site: "here"}, own: value.Rank{Priority: 1},
			act: choice.Yield, to: "x", why: "is in here"},
		{name: "no site", line: []backend.Member{plain, says("x", 6, 1, "")}, own: value.Rank{Priority: 1, Site: "there"}, act: choice.Lead},
		{name: "not ready", line: []backend.Member{plain, says("x", 6, 1, ""), says("y", 7, 1, "")}, unready: true, own: value.Rank{Priority: 1},
			act: choice.Yield, to: "x", why: "not ready"},
		{name: "not ready, and a smaller priority", line: []backend.Member{plain, says("x", 6, 0, "")}, unready: true, own: value.Rank{Priority: 1},
			act: choice.Yield, to: "x", why: "not ready"},
		{name: "not ready, and a larger priority", line: []backend.Member{plain, says("x", 6, 2, "")}, unready: true, own: value.Rank{Priority: 1},
			act: choice.Yield, to: "x", why: "not ready"},
		{name: "pinned", line: []backend.Member{plain, pinned}, act: choice.Lead},
		{name: "not ready, and pinned", line: []backend.Member{plain, pinned}, unready: true, act: choice.Wait},
		{name: "a smaller priority than a reader", line: []backend.Member{plain, shared}, own: value.Rank{Priority: -1}, act: choice.Lead},
		{name: "a smaller priority than one behind a reader", line: []backend.Member{plain, shared, says("y", 7, 0, "")}, own: value.Rank{Priority: -1},
			act: choice.Yield, to: "y", why: "priority 0"},
		{name: "not ready, and a reader", line: []backend.Member{plain, shared}, unready: true, act: choice.Yield, to: "shared", why: "not ready"},
		{name: "one in front", line: []backend.Member{says("x", 4, 9, ""), plain}, act: choice.Lead},
		{name: "its key in front", line: []backend.Member{says("m", 3, 0, ""), says("x", 4, 9, ""), plain}, act: choice.Lead},
		{name: "its position in front", line: []backend.Member{says("other", 5, 0, ""), says("x", 5, 9, ""), plain}, act: choice.Lead},
		{name: "a wish", line: []backend.Member{plain, says("x", 6, 0, "")}, h: wish(6, at.Add(time.Second)), own: value.Rank{Priority: 1}, act: choice.Yield, to: "x", why: "wished for"},
		{name: "a wish that has lapsed", line: []backend.Member{plain, says("x", 6, 0, "")}, h: wish(6, at), own: value.Rank{Priority: 1}, act: choice.Lead},
		{name: "a wish for it", line: []backend.Member{plain, says("x", 6, 9, "")}, h: wish(5, at.Add(time.Second)), act: choice.Lead},
	} {
		v := choice.View{Line: header.Line{Members: tt.line, Header: header.Header{Choice: tt.h}}, At: at}
		if is := v.Of(plain, !tt.unready, tt.own); is.Act != tt.act || is.To.Key != tt.to || !strings.Contains(is.Why, tt.why) {
			t.Errorf("%s: %+v, want %v, %q, %q", tt.name, is, tt.act, tt.to, tt.why)
		}
	}
	for _, w := range []struct {
		wish header.Wish
		want bool
	}{
		{header.Wish{Position: 1, Until: at.UnixMilli()}, false},
		{header.Wish{Position: 1, Until: at.UnixMilli() + 1}, true},
		{header.Wish{Position: 0, Until: at.UnixMilli() + 1}, false},
		{header.Wish{Position: 1, Until: at.Add(2 * header.MaxWish).UnixMilli()}, true},
		{header.Wish{Position: 1, Until: at.Add(2*header.MaxWish).UnixMilli() + 1}, false},
	} {
		if got := choice.Wished(w.wish, at); got != w.want {
			t.Errorf("%+v at %d: %t", w.wish, at.UnixMilli(), got)
		}
	}
}
