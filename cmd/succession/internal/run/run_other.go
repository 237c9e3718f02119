//go:build !unix

package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func newGuard() *cobra.Command { return &cobra.Command{Use: "guard", Hidden: true} }

func runElected(*globals, runOptions, string, string, []string, io.Writer) error {
	return errors.New("run needs the signals and process groups of Unix; use package elect in a program of your own")
}

func signalName(sig os.Signal) string { return sig.String() }
