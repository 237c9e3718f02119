package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// A build is what a binary knows of how it was made.
type build struct {
	Version      string   `json:"version"`            // the tag, such as v1.2.0, or what Go makes of the commit after it
	Commit       string   `json:"commit,omitempty"`   // empty if it was not built from a repository
	Modified     bool     `json:"modified,omitempty"` // there were changes that the commit lacks
	Go           string   `json:"go"`
	OS           string   `json:"os"`
	Arch         string   `json:"arch"`
	Coordinators []string `json:"coordinators"`
	Header       int      `json:"header"` // the format of an election's header that it reads and writes
}

func thisBuild() build {
	var schemes []string
	for _, d := range connect.Drivers() {
		schemes = append(schemes, d.Scheme)
	}
	b := build{
		Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Coordinators: schemes, Header: backend.HeaderFormat,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(info.Main.Version, b.Version)
		var at time.Time
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				at, _ = time.Parse(time.RFC3339, s.Value)
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
		// Before the first tag Go says (devel), and after it what it says of a commit then.
		if b.Version == "(devel)" && len(b.Commit) >= 12 {
			b.Version = fmt.Sprintf("v0.0.0-%s-%.12s", at.UTC().Format("20060102150405"), b.Commit)
		}
	}
	return b
}

func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = fmt.Sprintf(", commit %.12s", b.Commit)
		if b.Modified {
			commit += " and changes"
		}
	}
	return fmt.Sprintf("succession %s (%s, %s/%s%s)\ncoordinators: %s\nformats: header %d\n",
		b.Version, b.Go, b.OS, b.Arch, commit, strings.Join(b.Coordinators, ", "), b.Header)
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the coordinators and the formats that this build knows",
		Long: `Print the version of this build, the coordinators that it knows, and the format of an
election's header that it reads and writes: candidates of different versions can stand in one
line if that is the same. "succession --version" prints the same.

With -o json it prints one object:

  version       the tag, such as v1.2.0; after a tag, the next one with the time and the commit
  commit        what it was built from; left out if that is not known
  modified      true if it was built with changes that the commit lacks; left out otherwise
  go, os, arch  what it was built with, and for
  coordinators  an array of the schemes of --url
  header        the format of an election's header`,
		Example: `  succession version
  succession version -o json | jq -r .version`,
		Args: ui.NoArgs,
	}
	out := ui.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *out == ui.AsJSON {
			return ui.PrintJSON(cmd.OutOrStdout(), thisBuild())
		}
		_, err := fmt.Fprint(cmd.OutOrStdout(), thisBuild())
		return err
	}
	return cmd
}
