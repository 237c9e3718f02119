//go:build linux

package conformance_test

import (
	"context"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/internal/broken"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/lane"
	"github.com/succession-dev/succession/local"
)

// flawedScheme opens the backend of package local in a folder. Its parameters may name a flaw
// and a session time.
const flawedScheme = "flawed"

func TestMain(m *testing.M) {
	coordinator.Register(coordinator.Driver{Scheme: flawedScheme, Open: func(u *coordinator.URL) (backend.Backend, error) {
		flaw, ttl := u.Text("flaw", ""), u.Duration("ttl", 0)
		if err := u.Err(); err != nil {
			return nil, err
		}
		b, err := local.New(u.Path, nil)
		if err != nil {
			return nil, err
		}
		return flawed(b, flaw, ttl), nil
	}})
	rig.Candidate()
	os.Exit(m.Run())
}

func flawed(b backend.Backend, flaw string, ttl time.Duration) backend.Backend {
	if ttl > 0 {
		b = &leased{Backend: b, ttl: ttl}
	}
	if i := slices.IndexFunc(broken.ProcessFlaws, func(f broken.Flaw) bool { return f.Name == flaw }); i >= 0 {
		b = broken.New(b, broken.ProcessFlaws[i])
	}
	return b
}

// ofProcesses are the rules that need processes, with the session time of a harness for
// each.
var ofProcesses = map[string]time.Duration{
	"Fault.killed-process": time.Second,
	"Fault.stopped":        2 * time.Second, // a stop outlasts the slow re-check, of a second and a quarter
	"Fault.suspended":      time.Second,
}

// TestMatrixOfProcesses is TestMatrix for the rules whose candidates are processes of
// their own, which live in real time: the backend without a flaw passes them all, and
// each flaw fails those that are about what it breaks, and no other.
func TestMatrixOfProcesses(t *testing.T) {
	lane.Real(t)
	t.Parallel()
	for _, r := range conformance.Rules() {
		if slices.Contains(r.Needs, conformance.Process) && ofProcesses[r.ID] == 0 {
			t.Errorf("no harness is set for %s", r.ID)
		}
	}
	var running sync.WaitGroup
	for _, flaw := range slices.Concat([]broken.Flaw{{Name: "none"}}, broken.ProcessFlaws) {
		for id, ttl := range ofProcesses {
			running.Go(func() {
				h := processHarness(t, flaw.Name, id, ttl)
				res := conformance.Check(t.Context(), h, nil).Results[0]
				failed := res.Status == conformance.Failed
				t.Logf("%s: %v", flaw.Name, res)
				switch {
				case res.Status == conformance.NotJudged:
					t.Logf("calm: not judged: %s, %s: %s", flaw.Name, id, res.Reason)
				case failed == slices.Contains(strings.Fields(flaw.Must), id):
				case !failed:
					t.Errorf("%s: %s\n%s does not catch it", flaw.Name, flaw.Breaks, id)
				case !slices.Contains(strings.Fields(flaw.May), id):
					t.Errorf("%s: %s\nthe unrelated rule %s fails: %v", flaw.Name, flaw.Breaks, id, res)
				}
			})
		}
	}
	running.Wait()
}

// processHarness returns a harness on a new folder. Its sessions end by time if the rule needs
// deadlines.
func processHarness(t *testing.T, flaw, id string, ttl time.Duration) conformance.Harness {
	i := slices.IndexFunc(conformance.Rules(), func(r conformance.Rule) bool { return r.ID == id })
	leases := slices.Contains(conformance.Rules()[i].Needs, conformance.Deadlines)
	at := flawedScheme + ":" + t.TempDir() + "?flaw=" + url.QueryEscape(flaw)
	if leases {
		at += "&ttl=" + ttl.String()
	}
	h := conformance.Harness{
		Name:   "local",
		Open:   func(ctx context.Context) (backend.Backend, error) { return succession.Connect(ctx, at) },
		TTL:    ttl,
		Only:   []string{id},
		Faults: conformance.Faults{Process: rig.Process(at)},
	}
	if !leases {
		h.Lacks = map[conformance.Fault]string{conformance.Deadlines: "the death of a process is known at once"}
	}
	return h
}
