package zookeeper

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
)

// A claim for the item n_0000000007 is called n_0000000007-read-0000000003: so a list of names
// shows which items are claimed, and which claim is the first. A line that was made anew under its
// old name gives its items the old numbers. Such an item looks claimed as long as a claim for the
// former one of its name stands.

func claimPrefix(item string) string { return item + "-" + recipeRead }

// claimed returns the key of the item that the claim with this name is for.
func claimed(name string) (item string, ok bool) {
	at := strings.LastIndex(name, "-"+recipeRead)
	if at < 0 {
		return "", false
	}
	return name[:at], true
}

// Free returns the first item that nobody claims; see [backend.Session]. It reads the lists of names of the two lines at the same time,
// and then the item, with a watch, so that who claims it then need not read it again. So the number of its
// requests does not grow with the lines, but the list of the items' names does.
func (s *session) Free(ctx context.Context, items, claims string) (backend.Member, error) {
	return kit.Retry(ctx, pauses(), passing, func(ctx context.Context) (backend.Member, error) { return s.free(ctx, items, claims) })
}

func (s *session) free(ctx context.Context, items, claims string) (m backend.Member, err error) {
	lists, err := readAll(ctx, s, []string{s.options.path(claims), s.options.path(items)}, children)
	if err != nil {
		return m, err
	}
	taken := make(map[string]bool)
	for _, name := range lists[0].names {
		if _, member, _ := sequence(name); !member {
			continue
		}
		item, ok := claimed(name)
		if !ok {
			return m, kit.Foreign(backend.Member{Line: claims, Key: name}, "claim")
		}
		taken[item] = true
	}
	standing, err := places(lists[1].names)
	if err != nil {
		return m, err
	}
	for _, p := range standing {
		if taken[p.key] {
			continue
		}
		switch v, _, err := s.look(ctx, dataOf(s.options.path(items)+"/"+p.key)); {
		case err != nil:
			return m, err
		case v.missing: // it has been confirmed meanwhile
		case !v.pinned():
			return m, kit.Foreign(v.member(items, p.key), "item")
		default:
			return v.member(items, p.key), nil
		}
	}
	return m, backend.ErrTaken
}

// Claim is JoinShared for a member that claims the item; see [backend.Session]. It takes two round trips, as
// Join does, and a third if others claim at the same time. The transaction that creates the member demands
// that the item's znode exists.
func (s *session) Claim(ctx context.Context, line, value, record string, item backend.Member) (backend.Joined, error) {
	at, err := s.options.member(item)
	if err != nil {
		return backend.Joined{}, err
	}
	return s.join(ctx, &join{name: line, prefix: claimPrefix(item.Key), value: value, record: record, item: at, position: item.Position})
}

// holds fails if another claim for the same item stands in front of that of j, which is o, or has
// stood there until the item was confirmed. So if anybody has joined or left the line since, and no watch
// shows that the item stands, the item is looked at again, after the claims.
func (j *join) holds(ctx context.Context, o *member) error {
	if j.seen == nil {
		r, err := kit.Retry(ctx, pauses(), passing, func(ctx context.Context) (reading, error) { return j.s.reading(ctx, j.name, func() {}) })
		if err != nil {
			return err
		}
		j.seen = &r
	}
	index := j.seen.find(o.key())
	if index < 0 {
		return fmt.Errorf("%w: %s was deleted", backend.ErrNotMember, o.path)
	}
	if slices.ContainsFunc(j.seen.standing[:index], func(p place) bool { return strings.HasPrefix(p.key, j.prefix) }) {
		return fmt.Errorf("%w: %s", backend.ErrTaken, j.item)
	}
	if j.seen.changed == int64(o.joined.Position) {
		return nil
	}
	v, known := j.s.watches.known(dataOf(j.item))
	n, err := v.node, error(nil)
	if !known {
		n, err = retry(ctx, j.s, get(j.item))
	}
	if err == zk.ErrNoNode || err == nil && n.position() != j.position {
		return fmt.Errorf("%w: %s was confirmed", backend.ErrTaken, j.item)
	}
	return err
}
