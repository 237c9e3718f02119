package connect

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// completeBound is how long a shell waits for names at most.
const completeBound = time.Second

// Complete returns what completes, for a shell, the NAME of a command: names are those that the
// coordinator has which --url names, and that begin with what was typed; nil completes none. It is
// silent if the coordinator does not answer soon. What follows the NAME is left to the shell if it is
// a command, and otherwise not completed.
func (g *Flags) Complete(names func(ctx context.Context, s backend.Session, typed string) []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) > 0 && strings.Contains(cmd.Use, "CMD"):
			return nil, cobra.ShellCompDirectiveDefault
		case len(args) > 0 || names == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), completeBound)
		defer cancel()
		found := make(chan []string, 1)
		go func() { found <- g.ask(ctx, names, typed) }()
		select {
		case all := <-found:
			return all, cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done(): // closing what cannot be reached takes longer, and this process ends now
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// ask returns those of the names that begin with what was typed, sorted; none if the coordinator cannot
// be asked.
func (g *Flags) ask(ctx context.Context, names func(context.Context, backend.Session, string) []string, typed string) []string {
	b, err := succession.Connect(ctx, g.URL)
	if err != nil {
		return nil
	}
	defer b.Close()
	s, err := b.Session(ctx)
	if err != nil {
		return nil
	}
	found := slices.DeleteFunc(names(ctx, s, typed), func(name string) bool { return !strings.HasPrefix(name, typed) })
	slices.Sort(found)
	return found
}

// Lines are the elections, and other lines, in which somebody stands.
func Lines(ctx context.Context, s backend.Session, _ string) (names []string) {
	lines, err := s.Lines(ctx)
	if err != nil {
		return nil
	}
	for name, n := range lines {
		names = append(names, name+"\t"+ui.Count(n, "member"))
	}
	return names
}

// Records are the records in the folder that was typed.
func Records(ctx context.Context, s backend.Session, typed string) []string {
	names, err := s.List(ctx, path.Dir(typed))
	if err != nil {
		return nil
	}
	return names
}

// beginning matches what all URLs of a driver begin with: the scheme, and what must follow it in an example, the slashes
// before hosts or the name of the first parameter.
var beginning = regexp.MustCompile(`^[^:]+:(//|\?[^=]+=)?`)

// CompleteURL completes, for a shell, what the URL of a coordinator begins with.
func CompleteURL(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	var urls []string
	for _, d := range Drivers() {
		begin := beginning.FindString(cmp.Or(d.Example, d.Scheme+":"))
		if strings.HasPrefix(begin, typed) {
			urls = append(urls, strings.TrimSuffix(begin+"\t"+d.About, "\t"))
		}
	}
	return urls, directive
}

// CompleteList returns what completes, for a shell, the last word of a list with commas between: one of the
// words that is not in the list yet.
func CompleteList(words ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var lists []string
		for _, word := range words {
			if list := before + word; strings.HasPrefix(list, typed) && !slices.Contains(strings.Split(before, ","), word) {
				lists = append(lists, list)
			}
		}
		return lists, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
