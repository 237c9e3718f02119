package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// newSetups returns a command for each coordinator to which something has to be applied before its first session.
func newSetups(g *connect.Flags) (cmds []*cobra.Command) {
	for _, d := range connect.Drivers() {
		if d.Setup == nil || d.Example == "" { // a second name of the same
			continue
		}
		schema := "  succession " + d.Scheme + " schema | psql -v ON_ERROR_STOP=1 -1 \"host=h1 dbname=app\"" // without the variable psql hides failures
		c := &cobra.Command{
			Use:   d.Scheme,
			Short: "Prepare " + d.Title,
			Long: `Prepare ` + d.Title + ` for its first candidate: "schema" prints what an administrator applies. Where candidates have the
right to, they do it themselves.`,
			Example: schema,
			Args:    ui.NoArgs,
			RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		}
		c.AddCommand(&cobra.Command{
			Use:   "schema",
			Short: "Print what makes the schema on " + d.Title,
			Long: `Print what an administrator applies once, before the first candidate comes, and again where a newer version asks for it:
then nothing that is stored is lost, and candidates go on meanwhile. Nothing is sent anywhere: --url says what it is for. The first
time candidates do it themselves if they have the right to.`,
			Example: schema + "\n  succession " + d.Scheme + " schema --url '" + d.Scheme + "://h1/app?schema=jobs'",
			Args:    ui.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				u, err := setupURL(d, g.URL, cmd.Flags().Changed("url"))
				if err != nil {
					return err
				}
				text, err := d.Setup(u)
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			},
		})
		cmds = append(cmds, c)
	}
	return cmds
}

// setupURL returns the URL that says what is to be prepared. One that was given only in the environment, or by default, may be of another
// coordinator.
func setupURL(d coordinator.Driver, url string, explicit bool) (*coordinator.URL, error) {
	u, err := coordinator.ParseURL(url)
	if err != nil {
		return nil, err
	}
	switch of, other := coordinator.DefaultMux.Driver(u); {
	case other == nil && of.Title == d.Title:
		return u, nil
	case explicit:
		return nil, fmt.Errorf("%w URL: it is not of %s", backend.ErrInvalid, d.Title)
	}
	return coordinator.ParseURL(d.Scheme + ":")
}
