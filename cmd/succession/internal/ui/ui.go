// Package ui has what all subcommands do alike for the one who has called them: they
// check arguments, print text or JSON, listen to signals, and exit with a code.
package ui

import (
	"fmt"

	"github.com/spf13/cobra"
)

// OneName wants the name of an election as the only argument.
var OneName = One("election", "reports")

// One wants the name of what is said, such as example, as the only argument.
func One(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("want the NAME of one %s, as in: %s %s", what, cmd.CommandPath(), example)
		}
		return nil
	}
}

// NoArgs wants no argument.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
	}
	return nil
}
