package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/internal/header"
	"github.com/succession-dev/succession/recipes/record"
)

func newSet(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set [--at VERSION] NAME VALUE",
		Short: "Write a record",
		Long: `Write VALUE into the record NAME, whether there was one or not, and print its new
version. VALUE is "-" for all that standard input has, byte by byte. A value has at most
256 KiB. Write "--" before a VALUE that begins with a hyphen.

With --at it writes only if the record still has that version, so that of two who change
it at the same time neither overwrites the other unseen. "--at absent" writes only if
there is no record yet.

It refuses the names of elections, locks, queues and groups, and all below them: the
record with such a name keeps tokens growing, and one below could be taken for a member.

Exit codes: 0 written; 1 the record has another version than --at; 125 failed. Where the
answer of the coordinator was lost, the value may have been written: get tells.

With -o json it prints an object with the version.`,
		Example: `  succession set config/limits '{"connections": 10}'
  succession set config/limits - <limits.json
  succession set --at absent config/owner "$(hostname)" || echo "somebody else was first"
  version=$(succession get config/limits -o json | jq .version)
  succession set --at "$version" config/limits '{"connections": 20}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New(`want a NAME and one VALUE, as in: succession set config/limits 10; "-" is a VALUE from standard input`)
			}
			return nil
		},
	}
	var at atVersion
	cmd.Flags().Var(&at, "at", `write only if the record has this version, or is "absent"`)
	out := ui.OutputFlag(cmd)
	cmd.SetFlagErrorFunc(hyphenError)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, value := args[0], []byte(args[1])
		if args[1] == "-" {
			var err error
			if value, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), backend.MaxRecord+1)); err != nil {
				return fmt.Errorf("standard input: %w", err)
			}
		}
		if header.Is(value) {
			return errors.New("the value is that of an election's own record; make that with the commands for elections, such as: succession fence")
		}
		g.SayWhere(cmd, name)
		return changeRecord(g, name, func(ctx context.Context, r *record.Value[[]byte]) error {
			version, err := set(ctx, r, backend.Version(at), value)
			switch {
			case err != nil:
				return err
			case *out == ui.AsJSON:
				return ui.PrintJSON(cmd.OutOrStdout(), struct {
					Version backend.Version `json:"version"`
				}{version})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), version)
			return err
		})
	}
	return cmd
}

// hyphenError says what to do about a value that was taken for a flag.
func hyphenError(_ *cobra.Command, err error) error {
	return fmt.Errorf(`%w (write "--" before a VALUE that begins with a hyphen)`, err)
}

// set writes the record and returns its new version.
func set(ctx context.Context, r *record.Value[[]byte], at backend.Version, value []byte) (backend.Version, error) {
	if at == 0 {
		return r.Set(ctx, value)
	}
	e, err := r.Get(ctx)
	if err == nil && e.Version != at {
		err = hasChanged(r.Name(), e, at)
	}
	if err != nil {
		return 0, err
	}
	version, err := r.CompareAndSet(ctx, at, value)
	if errors.Is(err, backend.ErrVersion) {
		err = ui.Exitf(ui.ExitRefused, "%w", err)
	}
	return version, err
}
