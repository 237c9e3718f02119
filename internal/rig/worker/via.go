//go:build linux

package worker

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/migrate"
)

// open opens the backend that the URL names, past the servers' addresses where Via
// says so. A migration knows its coordinators by those addresses all the same.
func (c Config) open(ctx context.Context) (backend.Backend, error) {
	through := c.through()
	query, moves := strings.CutPrefix(c.URL, "migrate:?")
	if !moves || len(c.Via) == 0 {
		return succession.Connect(ctx, through.Replace(c.URL))
	}
	v, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	o := &migrate.Options{From: v.Get("from"), To: v.Get("to")}
	from, err := succession.Connect(ctx, through.Replace(o.From))
	if err != nil {
		return nil, err
	}
	to, err := succession.Connect(ctx, through.Replace(o.To))
	if err != nil {
		from.Close()
		return nil, err
	}
	return migrate.New(from, to, o), nil
}

// through replaces the addresses of servers by those of what stands in front of them:
// the longest first, as one may be what another begins with.
func (c Config) through() *strings.Replacer {
	pairs := slices.Clone(c.Via)
	slices.SortFunc(pairs, func(a, b [2]string) int { return cmp.Compare(len(b[0]), len(a[0])) })
	var all []string
	for _, p := range pairs {
		all = append(all, p[:]...)
	}
	return strings.NewReplacer(all...)
}
