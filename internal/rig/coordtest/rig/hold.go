package rig

import "slices"

// HoldBack makes one fault of that name of several, such as those on the two coordinators of a composite. A write is held back when one of
// them holds one.
func HoldBack(each []func() (held func() bool, release func())) (held func() bool, release func()) {
	var helds []func() bool
	var releases []func()
	for _, begin := range each {
		h, r := begin()
		helds, releases = append(helds, h), append(releases, r)
	}
	return func() bool { return slices.ContainsFunc(helds, func(held func() bool) bool { return held() }) }, func() {
		for _, release := range releases {
			release()
		}
	}
}
