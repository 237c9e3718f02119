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

// build is what version prints.
type build struct {
	Version      string   `json:"version"`
	Go           string   `json:"go"`
	OS           string   `json:"os"`
	Arch         string   `json:"arch"`
	Coordinators []string `json:"coordinators"`
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the coordinators that this build knows",
		Args:  ui.NoArgs,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b := build{"unknown", runtime.Version(), runtime.GOOS, runtime.GOARCH, backend.DefaultMux.Schemes()}
		if info, ok := debug.ReadBuildInfo(); ok {
			b.Version = info.Main.Version
		}
		if *out == ui.AsJSON {
			return ui.PrintJSON(cmd.OutOrStdout(), b)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "succession %s (%s, %s/%s)\ncoordinators: %s\n",
			b.Version, b.Go, b.OS, b.Arch, strings.Join(b.Coordinators, ", "))
		return err
	}
	return cmd
}
