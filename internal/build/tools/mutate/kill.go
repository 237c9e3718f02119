package main

import (
	"bufio"
	"bytes"
	"context"
	"slices"
	"strings"
	"time"
)

// What has become of a mutant.
const (
	killed    = "killed"
	survived  = "survived"
	unreached = "not reached"
)

// A result is what has become of a mutant.
type result struct {
	*mutant
	fate  string
	by    string // the test that has killed it
	late  bool   // that test did not end in time
	tests int    // how many tests reach it
	cut   bool   // not all of these were run
	took  time.Duration
}

// kill runs the tests that reach a mutant, the quick ones first, until one of them fails.
// It spends about so much time, as the tests take without a mutant.
func (r *runner) kill(ctx context.Context, m *mutant, units []*unit, atMost time.Duration) result {
	res := result{mutant: m, fate: survived, tests: len(units)}
	if len(units) == 0 {
		res.fate = unreached
		return res
	}
	began := time.Now()
	var spent time.Duration
	portion := time.Second / 2
	for len(units) > 0 && ctx.Err() == nil {
		var sum time.Duration
		n := 0
		for n == 0 || n < len(units) && sum+units[n].processor <= portion {
			sum += units[n].processor
			n++
		}
		if spent += sum; spent > atMost && spent > sum {
			res.cut = true
			break
		}
		for _, group := range together(units[:n]) {
			if by, late, dead := r.fails(ctx, m, group); dead {
				res.fate, res.by, res.late, res.took = killed, by, late, time.Since(began)
				return res
			}
		}
		units = units[n:]
		portion *= 2
	}
	res.took = time.Since(began)
	return res
}

// together groups tests that one process can run.
func together(units []*unit) (groups [][]*unit) {
	where := map[string]int{}
	for _, u := range units {
		key := u.bin.file + " " + strings.Join(u.parents, "/")
		k, ok := where[key]
		if !ok {
			k = len(groups)
			where[key] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], u)
	}
	return groups
}

// fails reports whether one of the tests fails as the mutant, and as the program does not.
func (r *runner) fails(ctx context.Context, m *mutant, group []*unit) (by string, late, dead bool) {
	var names []string
	var usual cost
	for _, u := range group {
		names = append(names, u.names...)
		usual.processor += u.processor
		usual.time += u.time
	}
	b, parents := group[0].bin, group[0].parents
	o := r.run(ctx, b, parents, names, m.number, "", usual.enough())
	if o.ok || ctx.Err() != nil {
		return "", false, false
	}
	by = failing(o.output)
	// If it fails without the mutant as well, it tells nothing.
	if test := strings.Split(by, "/"); len(test) > len(parents) && strings.HasPrefix(by, strings.Join(parents, "/")) {
		names = test[len(parents) : len(parents)+1]
	}
	if again := r.run(ctx, b, parents, names, -1, "", usual.enough()); !again.ok {
		r.tell("%s %s fails without a mutant", b.pkg, by)
		return "", false, false
	}
	return b.pkg + " " + by, o.late, true
}

// failing returns the test that has failed first, or its subtest.
func failing(output []byte) (name string) {
	for s := bufio.NewScanner(bytes.NewReader(output)); s.Scan(); {
		failed, ok := strings.CutPrefix(strings.TrimSpace(s.Text()), "--- FAIL: ")
		if !ok {
			continue
		}
		failed, _, _ = strings.Cut(failed, " ")
		if name != "" && !strings.HasPrefix(failed, name+"/") {
			break
		}
		name = failed
	}
	return name
}

// reaching lists for each mutant the tests that reach it.
func reaching(units []*unit) map[int][]*unit {
	by := map[int][]*unit{}
	for _, u := range units {
		for _, n := range u.reached {
			by[n] = append(by[n], u)
		}
	}
	for _, list := range by {
		slices.SortStableFunc(list, func(a, b *unit) int { return int(a.processor - b.processor) })
	}
	return by
}
