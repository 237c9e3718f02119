//go:build linux

package local_test

import (
	"context"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/linear"
	"github.com/succession-dev/succession/local"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, harness(t))
}

// Histories of records, items and locks fit one order.
func TestHistories(t *testing.T) { linear.Run(t, harness(t)) }

func harness(t *testing.T) conformance.Harness {
	dir, beside := coordtest.Folder(t), coordtest.Folder(t)
	operator := rig.OperatorOf(t, "local:"+dir)
	const server = "there is no server; the kernel is always there"
	return conformance.Harness{
		Name:      "local",
		Open:      func(context.Context) (backend.Backend, error) { return local.New(dir, nil) },
		TTL:       time.Second,
		Reference: func(context.Context) error { return calm.Write(beside) },
		Faults: conformance.Faults{
			Kill:    func(b backend.Backend) { local.Abandon(b.(*local.Backend)) },
			Remove:  operator.Remove,
			Process: rig.Process("local:" + dir),
			Drop:    operator.Drop,
		},
		Complete: true,
		Lacks: map[conformance.Fault]string{
			conformance.Expire:        "a session lives as long as its process",
			conformance.Cut:           server,
			conformance.Mute:          server,
			conformance.Deafen:        server,
			conformance.Sever:         server,
			conformance.Hide:          server,
			conformance.LoseAnswer:    server,
			conformance.HoldBack:      server,
			conformance.Restart:       server,
			conformance.Pause:         server,
			conformance.Reset:         server,
			conformance.Compact:       "there is no log, only the present state",
			conformance.Rewind:        "there is no server to restore; an old copy of the folder is refused (TestReset)",
			conformance.Clock:         "the wall clock is read once in the life of a folder, for its first number",
			conformance.Cluster:       server,
			conformance.Promote:       server,
			conformance.PromoteBeside: server,
			conformance.Requests:      server,
			conformance.Bytes:         server,
			conformance.Deadlines:     "the death of a process is known at once",
		},
	}
}
