//go:build !unix

package run

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/cmd/succession/internal/connect"
)

// Guard returns a subcommand that does nothing here.
func Guard() *cobra.Command { return &cobra.Command{Use: "guard", Hidden: true} }

func runElected(*connect.Flags, runOptions, string, string, []string, io.Writer) error {
	return errors.New("run needs the signals and process groups of Unix; use package elect in a program of your own")
}
