package rendezvous

import (
	"cmp"
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Divide divides names among several: it returns the one to which each name falls. The most and the
// fewest names that one gets differ by one at most. If several is empty, so is the result. No name,
// and none of several, may be given twice; their order does not matter.
//
// The hash of a name together with one of several says how much the two prefer each other, as in
// Choose. Each of several takes the names that it prefers, as many as it has room for; the other
// names go on to the next one that they prefer (Gale and Shapley 1962). So the result does not
// depend on any order, and when one of several comes or goes, few names move besides those that
// must.
//
// What Divide returns must never change: processes of different versions must agree.
func Divide(names, several []string) map[string]string {
	if len(several) == 0 {
		return nil
	}
	type one struct {
		name  string
		hash  uint64
		room  int
		taken proposals // the one that it prefers least is the first
	}
	all := make([]*one, len(several))
	for i, name := range several {
		all[i] = &one{name: name, hash: hash(name), room: len(names) / len(several)}
	}
	var together uint64 // it differs from names to names which ones get one more, because many may divide one name each
	for _, name := range names {
		together ^= hash(name)
	}
	slices.SortFunc(all, func(a, b *one) int {
		return cmp.Or(cmp.Compare(mix(b.hash^together), mix(a.hash^together)), cmp.Compare(a.name, b.name))
	})
	for _, o := range all[:len(names)%len(several)] {
		o.room++
	}
	for _, name := range names {
		p := &proposal{name: name, hash: hash(name)}
		p.order = make([]int, len(all))
		for i := range all {
			p.order[i] = i
		}
		weight := func(i int) uint64 { return mix(all[i].hash ^ p.hash) }
		slices.SortFunc(p.order, func(i, j int) int { return cmp.Or(cmp.Compare(weight(j), weight(i)), cmp.Compare(i, j)) })
		for p != nil {
			o := all[p.order[0]]
			p.order = p.order[1:]
			p.weight = mix(o.hash ^ p.hash)
			heap.Push(&o.taken, p)
			p = nil
			if len(o.taken) > o.room {
				p = heap.Pop(&o.taken).(*proposal)
			}
		}
	}
	falls := make(map[string]string, len(names))
	for _, o := range all {
		for _, p := range o.taken {
			falls[p.name] = o.name
		}
	}
	return falls
}

// A proposal is a name, at one of the several.
type proposal struct {
	name   string
	hash   uint64
	weight uint64 // at that one
	order  []int  // the ones that it has not tried, in the order of its preference
}

// proposals are a heap, of which the one with the smallest weight is the first.
type proposals []*proposal

func (p proposals) Len() int { return len(p) }
func (p proposals) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(p[i].weight, p[j].weight), cmp.Compare(p[i].name, p[j].name)) < 0
}
func (p proposals) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *proposals) Push(x any)   { *p = append(*p, x.(*proposal)) }
func (p *proposals) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}

func hash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:])
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014): each bit of x changes half of the result's.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
