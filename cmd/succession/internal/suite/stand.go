package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/conformance"
)

// standName is the subcommand of a candidate of the suite in a process of its own.
const standName = "stand"

// newStand is that subcommand. People do not call it.
func newStand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:    standName + " ELECTION ID",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Signals are the suite's, and the end of its process is the end of the input.
			ctx := context.Background()
			b, err := open(ctx, g.url)
			if err != nil {
				return err
			}
			defer b.Close()
			return conformance.Stand(ctx, b, args[0], args[1], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// again returns this command as a candidate.
func again(url, election, id string) *exec.Cmd {
	self, err := os.Executable()
	cmd := exec.Command(self, "--url", url, standName, election, id)
	if err != nil {
		cmd.Err = fmt.Errorf("this command does not know its own file: %w", err) // of Start
	}
	return cmd
}
