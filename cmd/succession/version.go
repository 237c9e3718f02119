package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the coordinators that this build knows",
		Args:  ui.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			version := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "succession %s (%s, %s/%s)\ncoordinators: %s\n",
				version, runtime.Version(), runtime.GOOS, runtime.GOARCH, strings.Join(backend.DefaultMux.Schemes(), ", "))
			return err
		},
	}
}
