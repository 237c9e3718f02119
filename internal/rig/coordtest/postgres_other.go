//go:build !linux

package coordtest

import (
	"context"
	"errors"
	"fmt"
)

// PostgresOptions are options; see those of Linux.
type PostgresOptions struct {
	Standby, Synchronous, Clock, Disk bool
	Config                            []string
}

// A Postgres cannot be had here; see the one of Linux.
type Postgres struct{ Cluster }

// StartPostgres fails.
func StartPostgres(context.Context, *PostgresOptions) (*Postgres, error) {
	return nil, fmt.Errorf("start PostgreSQL, which takes Linux here: %w", errors.ErrUnsupported)
}

// Promote does nothing.
func (*Postgres) Promote(context.Context) error { return errors.ErrUnsupported }
