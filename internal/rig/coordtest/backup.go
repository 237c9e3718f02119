package coordtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Backup copies the data of all servers, which stand still meanwhile. What it returns
// restores them as an operator does: it kills the servers, puts the copy in the place
// of their data, starts them, and blocks until all serve. The log then goes on from
// where it was, except that of a ZooKeeper ensemble, which begins a new epoch with
// each start.
func (c *Cluster) Backup(context.Context) (restore func(context.Context) error, err error) {
	dir, err := os.MkdirTemp(c.dir, "backup-")
	if err != nil {
		return nil, err
	}
	copies := make([]string, len(c.servers))
	err = c.Pause()
	for i, s := range c.servers {
		copies[i] = filepath.Join(dir, strconv.Itoa(i))
		if err == nil {
			err = os.CopyFS(copies[i], os.DirFS(s.spec.data))
		}
	}
	if err = errors.Join(err, c.Resume()); err != nil {
		return nil, fmt.Errorf("back up: %w", err)
	}
	return func(ctx context.Context) error {
		c.Kill()
		for i, s := range c.servers {
			err := os.RemoveAll(s.spec.data)
			if err == nil {
				err = os.CopyFS(s.spec.data, os.DirFS(copies[i]))
			}
			if err != nil {
				return fmt.Errorf("restore a backup: %w", err)
			}
		}
		return c.start(ctx)
	}, nil
}
