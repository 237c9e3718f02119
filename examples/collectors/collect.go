package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/record"
)

// collect is what each collector does until ctx ends: it joins the group, and collects from the
// sources that fall to it. If it loses its place in the group, it joins again. It tells when it
// begins and ends to collect from a source.
func collect(ctx context.Context, b succession.Backend, id string, tell func(what, source string, token uint64)) error {
	var lines atomic.Int64
	g := group.New(b, "collectors", &elect.Options{ID: id})
	return g.Run(ctx, func(ctx context.Context, p *group.Presence) error {
		go report(p, &lines)
		return p.Assign(ctx, sources, func(ctx context.Context, source string, t *elect.Term) error {
			tell("begin", source, t.Token())
			defer tell("end", source, t.Token())
			for ctx.Err() == nil {
				if next(ctx, b, source, t) == nil {
					lines.Add(1)
				}
				sleep(ctx, 20*time.Millisecond)
			}
			return nil
		})
	})
}

// position is the record of how many lines of a source have been collected.
func position(b succession.Backend, source string) *record.Value[int] {
	return record.New(b, "collectors-position/"+source, record.JSON[int]())
}

// next collects the next line. If it fails, it is to be called again for the same line. Once another
// collects from the source, the coordinator refuses the write: the position never goes back.
func next(ctx context.Context, b succession.Backend, source string, t *elect.Term) error {
	at := position(b, source)
	e, err := at.Get(ctx)
	if err != nil {
		return err
	}
	_, err = at.SetAs(ctx, t, e.Version, e.Value+1)
	return err
}

// report says from time to time, as the member's value, how much it has collected. Nobody is woken:
// whoever wants to know asks.
func report(p *group.Presence, lines *atomic.Int64) {
	for p.Context().Err() == nil {
		p.Set(p.Context(), fmt.Sprint(lines.Load(), " lines")) // if it fails, the next one tells
		sleep(p.Context(), 100*time.Millisecond)
	}
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
