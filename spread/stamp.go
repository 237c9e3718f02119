package spread

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/recipes/record"
)

// stampRecord is the record in which a cluster says which one it is. No election's home has this
// name, because the name of an election is not empty.
const stampRecord = homeSuffix

// A stamp is what a cluster says of itself. The only change that it ever has is that it becomes
// complete.
type stamp struct {
	ID       string   `json:"id"`       // of the clusters that belong together
	Name     string   `json:"name"`     // of this one
	Founders []string `json:"founders"` // those of the first list, sorted: they keep the homes of elections
	Complete bool     `json:"complete"` // all founders have the stamp
}

// stampOf is the handle on a cluster's stamp.
func stampOf(b backend.Backend) *record.Value[stamp] {
	return record.New(b, stampRecord, record.JSON[stamp]())
}

// founding returns the complete stamp of the clusters of the list. If all have answered and there
// is none, founding makes them the founders if create is true, and otherwise returns the zero
// stamp.
func (b *Backend) founding(ctx context.Context, create bool) (stamp, error) {
	b.mu.Lock()
	known := b.stamp
	b.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	names, err := b.list(ctx)
	if err != nil {
		return stamp{}, err
	}
	s, err := b.find(ctx, names)
	if err != nil || !s.Complete && !create {
		return stamp{}, err
	}
	if !s.Complete {
		if s, err = b.found(ctx, names); errors.Is(err, backend.ErrInvalid) { // another list may just have been founded
			if other, _ := b.find(ctx, names); other.Complete {
				s, err = other, nil
			}
		}
	}
	if err != nil {
		return stamp{}, err
	}
	for _, name := range s.Founders {
		if _, err := b.named(ctx, name); err != nil {
			return stamp{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stamp = &s
	return s, nil
}

// others is how long find waits for the other clusters when one has answered with the stamp. If one
// of them belongs to another list, it is better to know that now than at its first use.
const others = time.Second

// find asks all clusters of the list at the same time, and returns their stamp if it is complete.
// One answer is enough. find returns the zero stamp if all have answered and none has one.
func (b *Backend) find(ctx context.Context, names []string) (stamp, error) {
	type answer struct {
		name  string
		stamp stamp
		err   error
	}
	answers := make(chan answer, len(names))
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, name := range names {
		asking.Go(func() {
			c, err := b.named(ctx, name)
			if err != nil {
				answers <- answer{name, stamp{}, err}
				return
			}
			e, err := stampOf(c.b).Get(ctx)
			answers <- answer{name, e.Value, err}
		})
	}
	var found stamp
	var errs error
	var enough <-chan time.Time
	for range names {
		var a answer
		select {
		case a = <-answers:
		case <-enough:
			return found, nil
		}
		switch {
		case a.err != nil:
			errs = errors.Join(errs, fmt.Errorf("%s: %w", a.name, a.err))
		case !a.stamp.Complete:
		case a.stamp.Name != a.name, found.Complete && a.stamp.ID != found.ID:
			return stamp{}, notItself(a.name, a.stamp)
		default:
			found, enough = a.stamp, time.After(others)
		}
	}
	if found.Complete {
		return found, nil
	}
	return stamp{}, errs
}

// found makes the clusters of the list the founders. First all get the stamp, each on condition that
// it has none, and then it is made complete. So of two lists that have a cluster in common, at most
// one is ever founded. If several processes found the same list at the same moment, each does a
// part.
func (b *Backend) found(ctx context.Context, names []string) (stamp, error) {
	s := stamp{ID: rand.Text(), Founders: names}
	entries := make([]record.Entry[stamp], len(names))
	for i, name := range names {
		s.Name = name
		c, err := b.named(ctx, name)
		if err == nil {
			entries[i], err = put(ctx, c.b, s)
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		e := entries[i].Value
		if e.Name != name || !slices.Equal(e.Founders, names) || i > 0 && e.ID != s.ID {
			return s, otherList(name, names, e)
		}
		s.ID = e.ID // the first cluster decides
	}
	s.Complete = true
	for _, name := range names { // before strangers can make them, and keep operators from ringing them
		c, err := b.named(ctx, name)
		if err == nil {
			err = hang(ctx, c)
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	for i, name := range names {
		if entries[i].Value.Complete {
			continue
		}
		c, err := b.named(ctx, name)
		if err == nil {
			err = complete(ctx, c.b, entries[i])
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	b.log.Info("these clusters belong together from now on", "clusters", names)
	return s, nil
}

// put writes the stamp of a cluster if it has none, and returns the one that it has.
func put(ctx context.Context, b backend.Backend, s stamp) (record.Entry[stamp], error) {
	v := stampOf(b)
	version, err := v.CompareAndSet(ctx, backend.Absent, s)
	if errors.Is(err, backend.ErrVersion) {
		e, gerr := v.Get(ctx)
		if gerr != nil || e.Exists() { // otherwise the server that was asked lags behind
			return e, gerr
		}
	}
	return record.Entry[stamp]{Value: s, Version: version}, err
}

// complete makes the stamp of a founder complete. The caller knows that all founders have it.
func complete(ctx context.Context, b backend.Backend, e record.Entry[stamp]) error {
	was := e.Value
	e.Value.Complete = true
	_, err := stampOf(b).CompareAndSet(ctx, e.Version, e.Value)
	if !errors.Is(err, backend.ErrVersion) {
		return err
	}
	switch now, gerr := stampOf(b).Get(ctx); {
	case gerr != nil:
		return gerr
	case !now.Exists():
		return err
	case now.Value.ID != was.ID || !now.Value.Complete: // otherwise another process has made it complete
		return otherList(was.Name, was.Founders, now.Value)
	}
	return nil
}

// admit returns an error unless sub is the cluster with that name. It gives its stamp to a cluster
// that was added to the list, and makes that of a founder complete if whoever founded the list did
// not come to that.
func (b *Backend) admit(ctx context.Context, name string, sub backend.Backend) error {
	s, err := b.founding(ctx, true)
	if err != nil {
		return err
	}
	e, err := stampOf(sub).Get(ctx)
	if err == nil && !e.Exists() && !slices.Contains(s.Founders, name) {
		s.Name = name
		e, err = put(ctx, sub, s)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case !e.Exists():
		return fmt.Errorf("%w cluster %s: it has lost the record %q, or its URL is that of another cluster; elections may be led elsewhere; correct the URL, "+
			"or put this one in the place of one that is lost for good, as Replace of package spread says", backend.ErrInvalid, name, stampRecord)
	case !e.Value.Complete && e.Value.ID != s.ID:
		return fmt.Errorf("%w cluster %s: it was put into the list %v, which was never in use; delete the record %q there", backend.ErrInvalid, name, e.Value.Founders, stampRecord)
	case e.Value.ID != s.ID || e.Value.Name != name:
		return notItself(name, e.Value)
	case !e.Value.Complete:
		// Another founder is complete, so all have the stamp. This process needs no more than that, and
		// may lack the right.
		switch err := complete(ctx, sub, e); {
		case errors.Is(err, backend.ErrInvalid), errors.Is(err, backend.ErrVersion): // it is of another list by now, or of none
			return fmt.Errorf("%s: %w", name, err)
		case err != nil:
			b.log.Warn("the list of clusters was founded, and one of them does not say so: while the others are out, no process can start; let one start with the right to write the record",
				"cluster", name, "record", stampRecord, "err", err)
		}
	}
	return nil
}

// Replace puts an empty cluster in the place of a founder that is lost for good. The caller knows that it is lost, and has put the
// empty one under its URL: if both could be used, both would pass for that founder, and elections would be led twice. Replace fails
// with [ErrRefused] if that is no founder, and with [backend.ErrInvalid] if the cluster there is another one. It is no error that it
// has its place already. Replace blocks for a few round trips.
//
// The homes that the founder kept are lost with it, and whoever next uses one of these elections gives it a new one. So if any of
// them may have lived on another cluster, or been moving, stop all processes first; after Replace, [Backend.Put] each of these
// where it was led; and then start the processes. Otherwise restart those that have used the lost cluster. Tokens on
// the empty one begin anew: raise the fences of the elections that lived there before anybody leads them.
func (b *Backend) Replace(ctx context.Context, founder string) (err error) {
	defer func() { err = wrap("replace", founder, err) }()
	ctx, end, err := b.step(ctx)
	if err != nil {
		return err
	}
	defer end()
	s, err := b.founding(ctx, false)
	if err != nil {
		return err
	}
	if !slices.Contains(s.Founders, founder) {
		return fmt.Errorf("%w: the founders are %v; any other cluster gets its record %q from who uses it", ErrRefused, s.Founders, stampRecord)
	}
	c, err := b.named(ctx, founder)
	if err != nil {
		return err
	}
	if err := hang(ctx, c); err != nil { // before strangers can make it, as when the list was founded
		return err
	}
	s.Name = founder
	if _, err := put(ctx, c.b, s); err != nil {
		return err
	}
	return b.admit(ctx, founder, c.b)
}

// otherList says that a cluster has a stamp that does not belong to the list of names.
func otherList(cluster string, names []string, s stamp) error {
	return fmt.Errorf("%w list of clusters %v: %s was put into another list, as %s of %v; give all processes one list, "+
		"or delete the record %q there if that list was never used", backend.ErrInvalid, names, cluster, s.Name, s.Founders, stampRecord)
}

func notItself(name string, s stamp) error {
	return fmt.Errorf("%w list of clusters: what it calls %s is the cluster %s of the list that begins with %v; correct the URL", backend.ErrInvalid, name, s.Name, s.Founders)
}
