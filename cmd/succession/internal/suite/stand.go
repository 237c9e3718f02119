package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/conformance"
)

// standName is the subcommand of a candidate of the suite in a process of its own.
const standName = "stand"

// Stand returns the hidden subcommand that the suite starts by itself.
func Stand(g *connect.Flags) *cobra.Command {
	return &cobra.Command{
		Use:    standName + " ELECTION ID",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Signals are the suite's, and the end of its process is the end of the input.
			ctx := context.Background()
			b, err := connect.Open(ctx, g.URL)
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
