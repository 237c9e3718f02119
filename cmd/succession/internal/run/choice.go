package run

import "github.com/spf13/cobra"

// A choice is what decides, beside the order of the line, whether this process is to lead.
type choice struct {
	ready    string // a line of shell
	priority int
	site     string

	asking chan struct{} // closed when the last run of ready has ended; nil before the first
}

func (c *choice) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.ready, "ready", "", "a line of shell, asked about once a second for at most 5s: exit code 0 says that this process can lead now")
	f.IntVar(&c.priority, "priority", 0, "who comes first gives way to one behind it that is ready and has a larger priority")
	f.StringVar(&c.site, "site", "", "where this process is: of the same priority, those are preferred that are where the last leader was")
}
