package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/recipes/record"
)

func newDelete(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete [--at VERSION] NAME",
		Short: "Delete a record",
		Long: `Delete the record NAME, with --at only if it still has that version. It refuses what
"succession set" refuses.

Exit codes: 0 deleted; 1 there is no such record, or it has another version than --at;
125 failed. Where the answer of the coordinator was lost, it may have been deleted.`,
		Example: `  succession delete config/limits
  succession delete --at 1790204378626 config/limits`,
		Args: ui.One("record", "config/limits"),
	}
	var at atVersion
	cmd.Flags().Var(&at, "at", "delete only if the record has this version")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if at == atVersion(backend.Absent) {
			return errors.New("--at absent: there would be nothing to delete; give a version")
		}
		return changeRecord(g, args[0], func(ctx context.Context, r *record.Value[[]byte]) error {
			e, err := deleted(ctx, r, backend.Version(at))
			if err == nil && !e.Exists() {
				err = noRecord(g, r.Name())
			}
			return err
		})
	}
	return cmd
}

// deleted deletes the record and returns what it was: the version that it has read.
func deleted(ctx context.Context, r *record.Value[[]byte], at backend.Version) (record.Entry[[]byte], error) {
	for {
		e, err := r.Get(ctx)
		switch {
		case err != nil || !e.Exists():
			return e, err
		case at != 0 && e.Version != at:
			return e, hasChanged(r.Name(), e, at)
		}
		if err := r.Delete(ctx, e.Version); !errors.Is(err, backend.ErrVersion) {
			return e, err
		}
	}
}
