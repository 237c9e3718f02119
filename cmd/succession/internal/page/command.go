package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/cmd/succession/internal/door"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// The environment variables that may have the tokens.
const (
	tokenVariable = "SUCCESSION_UI_TOKEN"
	lookVariable  = "SUCCESSION_UI_LOOK_TOKEN"
)

// Command returns the command ui.
func Command(g *connect.Flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ui [NAME...]",
		Short: "Serve a page that shows all elections",
		Long: `Serve a web page that shows all elections below --url as they are: who leads, with which
token; the whole line; who led when; the migration of an election, and what blocks it; locks,
groups and queues. The page changes by itself. It asks the coordinator only while it is open
somewhere, once for all who look. It runs until it is interrupted.

An election in whose line nobody stands is shown if it has a header or a history, on
coordinators that can tell at once: etcd, Consul, PostgreSQL, Kubernetes and local:. Elsewhere
it is shown if it is named as NAME, or was seen since the start.

With --coordinator NAME=URL, once for each, in the place of --url, several coordinators have a page
each, below a path of that NAME, and an overview says how each of them is. One that is not there
holds up nothing, at the start too. Without "NAME=" the name is the scheme of the URL. In
$` + coordinatorsVariable + ` they stand with spaces between. The clusters of a spread: URL are shown so,
too. Name an election with its coordinator then, as in payments:reports.

The page can only be looked at, unless --allow says what else:

  resign  ask a leader to resign, and say who is to lead next
  pause   let nobody lead, and somebody again

It is for this machine, unless --listen says otherwise. Then whoever looks needs a token of
16 bytes or more, from --token-file or $` + tokenVariable + `. Who has the one of --look-token-file or
$` + lookVariable + ` may only look. There is no TLS: put a server with TLS in
front and give its name as --host, or forward a port, as with ssh -L.

Behind a proxy, --base-path is the path that it passes on, as in /elections. If it takes the
path away, none is needed. With --user-header the proxy says who asks, and what is done is done
in that name. The header is believed in requests that have a token in the header
Authorization: the proxy adds both, and replaces what was sent to it. Nobody else can act
then.`,
		Example: `  succession --url etcd://h1:2379/app ui
  succession --url etcd://h1:2379/app ui --allow resign,pause reports
  succession ui --coordinator orders=etcd://h1:2379/app --coordinator payments=consul://h2:8500/app
  succession ui --listen 0.0.0.0:8070 --host elections.example.com --token-file /etc/succession/ui-token
  succession ui --token-file ui-token --base-path /elections --user-header X-Remote-User --allow resign`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	listen := f.String("listen", "127.0.0.1:8070", "the address to serve at; port 0 is any that is free")
	hosts := f.StringArray("host", nil, "a name that the page is reached by, beside the address; may be repeated")
	tokenFile := f.String("token-file", "", "a file with the token that whoever looks needs")
	lookFile := f.String("look-token-file", "", "a file with a token for those who may only look")
	base := f.String("base-path", "", "the path at which the page begins, such as /elections")
	user := f.String("user-header", "", "the header in which a proxy says who asks; it needs a token, which the proxy sends too")
	each := f.StringArray("coordinator", nil, "NAME=URL: one of several coordinators, each with a page; may be repeated")
	allow := f.StringSlice("allow", nil, "what may be done on the page, with commas between: resign, pause")
	cmd.RegisterFlagCompletionFunc("coordinator", connect.CompleteURL)
	cmd.RegisterFlagCompletionFunc("allow", connect.CompleteList(string(Resign), string(Pause)))
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		o := Options{Hosts: *hosts, By: ui.WhoAmI(), Logger: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))}
		all, err := several(cmd.Context(), *each, g.URL, cmd.Flag("url").Changed)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := backend.CheckName(name); len(all) == 0 && err != nil {
				return err
			}
		}
		for _, name := range *allow {
			a, err := ParseAct(name)
			if err != nil {
				return fmt.Errorf("--allow: %w", err)
			}
			o.Allow = append(o.Allow, a)
		}
		if err := o.behind(*base, *user); err != nil {
			return err
		}
		if err := o.tokens(*tokenFile, *lookFile); err != nil {
			return err
		}
		l, err := listenAt(*listen, cmp.Or(o.Token, o.LookToken))
		if err != nil {
			return err
		}
		defer l.Close()
		unit := ui.OpenUnit()
		defer unit.Close()
		run := func(ctx context.Context, s *Server) error {
			at := fmt.Sprintf("http://%s%s/", l.Addr(), o.BasePath)
			fmt.Fprintln(cmd.OutOrStdout(), at)
			unit.Tell("READY=1\nSTATUS=serving " + at)
			defer unit.Tell("STOPPING=1")
			return serve(ctx, l, s)
		}
		if len(all) > 0 {
			return ui.UntilSignal(func(ctx context.Context) error {
				return open(all, names, func(opened []Coordinator) error { return run(ctx, NewOverview(opened, o)) })
			})
		}
		o.URL, o.Names = coordinator.Redact(g.URL), names
		return g.WithAll(func(ctx, _ context.Context, b backend.Backend) error { return run(ctx, New(b, o)) })
	}
	return cmd
}

// meansOther are the headers that do not say who asks. The name would be a token, or what a browser says, or they are taken away on
// the way, as those of a connection are.
var meansOther = func() map[string]bool {
	m := make(map[string]bool)
	for _, name := range []string{
		"Authorization", "Cookie", "Proxy-Authorization", // secrets, which would be shown
		"Host", "Origin", "Referer", "User-Agent", "Content-Type", "Content-Length", ownHeader, "Sec-Fetch-Site", "Sec-Fetch-Mode",
		"Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host",
		"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	} {
		m[name] = true
	}
	return m
}()

// behind sets what a proxy in front of the page needs.
func (o *Options) behind(base, user string) error {
	if path := strings.Trim(base, "/"); path != "" {
		if o.BasePath = "/" + path; base[0] != '/' || path == "healthz" || backend.CheckName(path) != nil {
			return fmt.Errorf("--base-path %q is no path of this page; give one such as /elections", base)
		}
	}
	if o.UserHeader = user; meansOther[http.CanonicalHeaderKey(user)] {
		return fmt.Errorf("--user-header %q says something else than who asks; give one such as X-Remote-User", user)
	}
	if user != "" && strings.ContainsFunc(user, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		return fmt.Errorf("--user-header %q is no name of a header; give one such as X-Remote-User", user)
	}
	return nil
}

// tokens sets the tokens, which must fit what else is set.
func (o *Options) tokens(file, lookFile string) (err error) {
	if o.Token, err = readToken("--token-file", file, tokenVariable); err != nil {
		return err
	}
	if o.LookToken, err = readToken("--look-token-file", lookFile, lookVariable); err != nil {
		return err
	}
	switch {
	case o.UserHeader != "" && o.Token == "" && o.LookToken == "":
		return fmt.Errorf("--user-header needs a token, which the proxy sends with the header: without one whoever reaches the port could say to be anybody; give one with --token-file or $%s", tokenVariable)
	case o.LookToken != "" && o.Token == "" && len(o.Allow) > 0:
		return fmt.Errorf("--allow needs a token beside the one to look with; give one with --token-file or $%s", tokenVariable)
	case o.LookToken != "" && o.LookToken == o.Token:
		return errors.New("the two tokens are the same, so whoever may look could also act; give two different ones")
	}
	return nil
}

// readToken returns a token, or "" if none is given by the flag, which names the file, or in the environment.
func readToken(flag, file, variable string) (string, error) {
	token, from := strings.TrimSpace(os.Getenv(variable)), "$"+variable
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s: %w", flag, err)
		}
		token, from = strings.TrimSpace(string(text)), file
		if token == "" {
			return "", fmt.Errorf("%s: %s is empty", flag, file)
		}
	}
	if token != "" && len(token) < minToken {
		return "", fmt.Errorf("the token of %s has %d bytes; give it %d or more, as from: openssl rand -hex 16", from, len(token), minToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) { // which no form and no header sends as it is
		return "", fmt.Errorf("the token of %s has a space, a newline or a character beyond ASCII in it; give one as from: openssl rand -hex 16", from)
	}
	return token, nil
}

// listenAt listens at the address. Beyond this machine that needs a token.
func listenAt(address, token string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() && token == "" {
		l.Close()
		return nil, fmt.Errorf("--listen %s can be reached from other machines, which needs a token: give one with --token-file or $%s, or listen at 127.0.0.1", address, tokenVariable)
	}
	return l, nil
}

// serve serves the page until ctx ends, and closes it.
func serve(ctx context.Context, l net.Listener, s *Server) error {
	hs := &http.Server{Handler: s, IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug)}
	failed := make(chan error, 1)
	go func() { failed <- door.Serve(hs, l, errManyConnections.Error(), "/healthz") }()
	select {
	case err := <-failed:
		s.Close()
		return err
	case <-ctx.Done():
	}
	s.Close()
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if hs.Shutdown(closing) != nil {
		hs.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}
