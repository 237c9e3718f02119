//go:build linux

package local_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/local"
)

func TestConformance(t *testing.T) {
	dir := t.TempDir()
	const server = "there is no server; the kernel is always there"
	conformance.Run(t, conformance.Harness{
		Name: "local",
		Open: func(context.Context) (backend.Backend, error) { return local.New(dir, nil) },
		TTL:  time.Second,
		Faults: conformance.Faults{
			Kill:   func(b backend.Backend) { local.Abandon(b.(*local.Backend)) },
			Remove: func(_ context.Context, m backend.Member) error { return os.Remove(fifo(dir, m)) },
			Drop: func(_ context.Context, line string) error {
				return os.RemoveAll(filepath.Join(dir, filepath.FromSlash(line)))
			},
		},
		Lacks: map[conformance.Fault]string{
			conformance.Expire:     "a session lives as long as its process",
			conformance.Cut:        server,
			conformance.Deafen:     server,
			conformance.LoseAnswer: server,
			conformance.Restart:    server,
			conformance.Pause:      server,
			conformance.Reset:      server,
			conformance.Requests:   server,
			conformance.Deadlines:  "the death of a process is known at once",
		},
	})
}
