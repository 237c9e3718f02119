package conformance_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
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
			s = withoutRecords{s}
		case conformance.Pins:
			s = withoutPins{s}
		}
	}
	return s, nil
}

func unsupported(op string) error {
	return &backend.Error{Backend: "bare", Op: op, Err: errors.ErrUnsupported}
}

type withoutPins struct{ backend.Session }

func (withoutPins) Pin(context.Context, backend.Member, backend.Header, backend.Version) error {
	return unsupported("pin")
}

type withoutRecords struct{ backend.Session }

func (withoutRecords) Get(context.Context, string) (backend.Record, error) {
	return backend.Record{}, unsupported("get")
}

func (withoutRecords) Put(context.Context, string, []byte, *backend.If) (backend.Version, error) {
	return 0, unsupported("put")
}

func (withoutRecords) Delete(context.Context, string, *backend.If) error {
	return unsupported("delete")
}

func (withoutRecords) List(context.Context, string) ([]string, error) {
	return nil, unsupported("list")
}

func (withoutRecords) Watch(context.Context, string, backend.Version) (backend.Record, error) {
	return backend.Record{}, unsupported("watch")
}

// The suite finds out what a backend lacks: of the rules that memory passes, those that
// need it are impossible, and all others pass.
func TestAbilities(t *testing.T) {
	for name, lacks := range map[string][]conformance.Fault{
		"no records":          {conformance.Records},
		"no pins":             {conformance.Pins},
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
					res = conformance.Check(t.Context(), h, nil).Results[0]
				})
				want := conformance.Passed
				if slices.ContainsFunc(r.Needs, func(f conformance.Fault) bool { return slices.Contains(lacks, f) || f == conformance.Process }) {
					want = conformance.Impossible
				}
				if res.Status != want {
					t.Errorf("%v; want it to be %s", res, want)
				}
			}
		})
	}
}
