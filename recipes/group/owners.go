package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/naming"
)

// An Owner says who owns an item, or owned it last.
type Owner struct {
	Item string `json:"item"`
	// ID is the member's; empty if nobody has owned the item yet.
	ID string `json:"id,omitempty"`
	// Token is the token of the term in which the member owns the item.
	Token uint64 `json:"token,omitempty"`
	// Since is when that term began, on the owner's clock; zero while it begins.
	Since time.Time `json:"since,omitzero"`
	// Held says that the member owns the item now. Otherwise nobody does.
	Held bool `json:"held,omitempty"`
}

// Owners returns who owns each of the items, in the order in which they are given; without any, of
// all items that were ever owned. It blocks for about two round trips, with two requests for each
// item, sixteen items at a time, and one request more to find all items; on ZooKeeper there are more, as each read is
// made fresh. Its error matches
// [errors.ErrUnsupported] if the backend has no records.
//
// Owners reads from the item's line who owns it now, and from a record, which outlives the owner,
// who owned it last. These records stand below NAME-owners/ until somebody deletes them, also those
// of items that are not used any more.
func (g *Group) Owners(ctx context.Context, items ...string) ([]Owner, error) {
	s, err := g.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	records := make([]string, len(items))
	for i, item := range items {
		if err := g.checkItem(item); err != nil {
			return nil, err
		}
		records[i] = g.owner(item)
	}
	if len(items) == 0 {
		if records, err = s.List(ctx, g.owners()); err != nil {
			return nil, unassigned(err)
		}
	}
	owners := make([]Owner, len(records))
	err = again.AtOnce(ctx, len(records), func(ctx context.Context, i int) error {
		r, err := s.Get(ctx, records[i])
		if err != nil {
			return unassigned(err)
		}
		o := &owners[i]
		if *o, err = parseOwner(r.Value); err != nil {
			return fmt.Errorf("group: record %s does not say who owns an item: %w", r.Name, err)
		}
		if len(items) > 0 {
			o.Item = items[i]
		}
		l, err := g.election(strings.TrimPrefix(records[i], g.owners()+"/")).Leader(ctx)
		switch {
		case errors.Is(err, elect.ErrNoLeader):
		case err != nil:
			return err
		case l.Token != o.Token: // the owner has not noted yet that it is the owner
			o.ID, o.Token, o.Since, o.Held = l.ID, l.Token, time.Time{}, true
		default:
			o.Held = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The record of an item that was not asked for may have been deleted meanwhile.
	return slices.DeleteFunc(owners, func(o Owner) bool { return o.Item == "" }), nil
}

// unassigned says what to do if the backend has no records.
func unassigned(err error) error {
	return recordless(err, "use another coordinator to assign items")
}

// owners is the folder of the owners' records, and owner the record of one item's owner.
func (g *Group) owners() string { return g.name + naming.Owners }

func (g *Group) owner(item string) string { return g.owners() + "/" + escape(item) }

// election returns the election of an item's owners. Its name stands beside that of the group, not
// below it, because etcd cannot keep a line within another.
func (g *Group) election(escaped string) *elect.Election {
	return elect.New(g.b, g.itemLine(escaped), &g.o)
}

func (g *Group) itemLine(escaped string) string { return g.name + naming.Item + escaped }

// escape makes any item a part of a name: letters, digits, '.' and '-' stay as they are, and every
// other byte becomes '_' with two hexadecimal digits. So does a '.' at the beginning, because "."
// and ".." are not allowed as names.
func escape(item string) string {
	var b strings.Builder
	for i := range len(item) {
		switch c := item[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return b.String()
}

// parseOwner reads who owned an item last; nobody if there is nothing to read.
func parseOwner(value []byte) (o Owner, err error) {
	if len(value) > 0 {
		err = json.Unmarshal(value, &o)
	}
	o.Held = false // the line says whether it is held
	o.Since = clock.Believable(o.Since)
	return o, err
}
