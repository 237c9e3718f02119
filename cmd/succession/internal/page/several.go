package page

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/spread"
)

// coordinatorsVariable may have what the flag --coordinator has, with spaces between.
const coordinatorsVariable = "SUCCESSION_UI_COORDINATORS"

// A named is a coordinator with what people call it.
type named struct{ name, url string }

// several returns the coordinators that are to have a page each; none if there is one, that of --url. flags are those of --coordinator, and
// explicit says that --url is on the command line, which counts before the environment.
func several(ctx context.Context, flags []string, url string, explicit bool) ([]named, error) {
	if len(flags) > 0 && explicit {
		return nil, errors.New("--url is one coordinator, and --coordinator one of several; give all with --coordinator")
	}
	if len(flags) == 0 && !explicit {
		flags = strings.Fields(os.Getenv(coordinatorsVariable))
	}
	if len(flags) == 0 && strings.HasPrefix(url, spread.Scheme+":") {
		flags = []string{url}
	}
	var all []named
	for i, text := range flags {
		name, url, given := strings.Cut(text, "=")
		if given = given && !strings.ContainsAny(name, ":?@"); !given { // a URL alone
			url = text
		}
		scheme, _, _ := strings.Cut(url, ":")
		if scheme == spread.Scheme {
			if given {
				return nil, fmt.Errorf("--coordinator %s: the clusters of a list have names of their own; leave this one out", name)
			}
			clusters, err := clustersOf(ctx, url)
			if err != nil {
				return nil, err
			}
			all = append(all, clusters...)
			continue
		}
		if !given {
			if _, err := coordinator.ParseURL(url); err != nil { // its beginning may be a part of a password, and is not shown
				return nil, fmt.Errorf("coordinator %d: %w", i+1, err)
			}
			name = scheme
		}
		all = append(all, named{name, url})
	}
	return all, checkSeveral(all)
}

// clustersOf returns the clusters of a spread: URL.
func clustersOf(ctx context.Context, url string) (all []named, err error) {
	b, err := connect.OpenLater(url)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	clusters, err := b.(*spread.Backend).Clusters(ctx)
	for _, c := range clusters {
		all = append(all, named{c.Name, c.URL})
	}
	return all, err
}

// checkSeveral fails if people could not tell the coordinators apart.
func checkSeveral(all []named) error {
	names, urls := make(map[string]bool), make(map[string]string)
	for _, c := range all {
		if err := CheckName(c.name); err != nil {
			return err
		}
		if names[c.name] {
			return fmt.Errorf("two coordinators are called %s; give each a name, as in --coordinator payments=%s", c.name, coordinator.Redact(c.url))
		}
		if other, is := urls[c.url]; is {
			return fmt.Errorf("%s and %s have the same URL, %s", other, c.name, coordinator.Redact(c.url))
		}
		names[c.name], urls[c.url] = true, c.name
	}
	return nil
}

// open opens the coordinators, which need not be there yet, and closes them when f has returned. elections are the names on the
// command line, each with its coordinator.
func open(all []named, elections []string, f func([]Coordinator) error) error {
	var opened []Coordinator
	defer func() {
		var closing sync.WaitGroup
		for _, c := range opened {
			closing.Go(func() { _ = c.Backend.Close() }) // a session that cannot be closed has joined nothing
		}
		closing.Wait()
	}()
	for _, c := range all {
		b, err := connect.OpenLater(c.url)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		opened = append(opened, Coordinator{
			Name: c.name, URL: coordinator.Redact(c.url), Backend: b,
			Explain: func(ctx context.Context) string { return connect.Explain(ctx, c.url) },
		})
	}
	for _, text := range elections {
		at, name, _ := strings.Cut(text, ":")
		i := slices.IndexFunc(opened, func(c Coordinator) bool { return c.Name == at })
		if i < 0 {
			return fmt.Errorf("say of which coordinator %q is, as in %s:reports", text, all[0].name)
		}
		if err := backend.CheckName(name); err != nil {
			return err
		}
		opened[i].Names = append(opened[i].Names, name)
	}
	return f(opened)
}
