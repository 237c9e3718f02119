package conformance_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/again"
	"github.com/succession-dev/succession/internal/rig/lane"
)

// A bare backend lacks abilities.
type bare struct {
	backend.Backend
	lacks []conformance.Fault
}

func (b *bare) Unwrap() backend.Backend { return b.Backend }

func (b *bare) Session(ctx context.Context) (backend.Session, error) {
	s, err := b.Backend.Session(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range b.lacks {
		switch f {
		case conformance.Records:
			s = withoutRecords{full: full{s}}
		case conformance.Shares:
			s = withoutShares{full: full{s}}
		case conformance.Pins:
			s = withoutPins{full: full{s}}
		case conformance.Items:
			s = withoutItems{full: full{s}}
		}
	}
	return s, nil
}

// Of methods with the same name Go selects the one that is embedded less deeply.
type (
	full          struct{ backend.Session }
	withoutShares struct {
		kit.NoShares
		full
	}
	withoutPins struct {
		kit.NoPins
		full
	}
	withoutItems struct {
		kit.NoItems
		full
	}
	withoutRecords struct {
		kit.NoRecords
		full
	}
)

// Join and WatchPlace tell of no record.
func (s withoutRecords) Join(ctx context.Context, line, value, _ string) (backend.Joined, error) {
	j, err := s.Session.Join(ctx, line, value, "")
	return backend.Joined{Member: j.Member}, err
}

func (s withoutRecords) WatchPlace(ctx context.Context, m backend.Member, p *backend.Place) error {
	return again.WatchPlace(ctx, s, m, p)
}

// The suite finds out what a backend lacks: of the rules that memory passes, those that
// need it are impossible, and all others pass. Without records nothing tells places.
func TestAbilities(t *testing.T) {
	lane.Unraced(t)
	const quiet = "G5.elections"
	for name, lacks := range map[string][]conformance.Fault{
		"no records":          {conformance.Records},
		"no shared members":   {conformance.Shares},
		"no pins":             {conformance.Pins},
		"no items":            {conformance.Items},
		"no records, no pins": {conformance.Records, conformance.Pins},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range conformance.Rules() {
				var res conformance.Result
				synctest.Test(t, func(t *testing.T) {
					k := newCluster()
					defer close(k.over)
					h := k.harness(func(b backend.Backend) backend.Backend { return &bare{b, lacks} })
					h.Only = []string{r.ID}
					if r.ID == quiet && slices.Contains(lacks, conformance.Records) {
						h.Waive = map[string]string{quiet: "without records it cannot watch places"}
					}
					res = conformance.Check(t.Context(), h, nil).Results[0]
				})
				want := conformance.Passed
				if r.ID == quiet && slices.Contains(lacks, conformance.Records) {
					want = conformance.Waived
				}
				if slices.ContainsFunc(r.Needs, func(f conformance.Fault) bool {
					return slices.Contains(lacks, f) || f == conformance.Process || f == conformance.Places && slices.Contains(lacks, conformance.Records)
				}) {
					want = conformance.Impossible
				}
				if res.Status != want {
					t.Errorf("%v; want it to be %s", res, want)
				}
			}
		})
	}
}
