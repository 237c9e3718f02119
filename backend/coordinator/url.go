package coordinator

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/redact"
)

// A URL names a coordinator:
//
//	scheme://host:port,host:port/path?parameter=value
//	scheme:opaque?parameter=value
//
// Unlike net/url it has a list of hosts; IPv6 addresses stand in brackets. It has no place
// for secrets: a user name or a password is refused. Drivers read secrets from a file or
// an environment variable that a parameter names.
type URL struct {
	Scheme string
	Hosts  []string // as written: "h", "h:2181", "[::1]:2181", "[fe80::1%25eth0]"; none in the form scheme:opaque
	Path   string   // what follows the hosts, with its leading slash; or the opaque part
	params map[string][]string
	seen   []string // parameters that the driver has asked for
	bad    []string // what is wrong with values
}

// ParseURL reads a URL. Its errors say what is wrong, and show nothing of the URL: any part of a
// URL that cannot be read may be a password.
func ParseURL(raw string) (*URL, error) {
	bad := func(why string) (*URL, error) {
		return nil, fmt.Errorf("%w URL: %s", backend.ErrInvalid, why)
	}
	if raw == "" {
		return bad(`it is empty; say which coordinator to use, such as "etcd://localhost:2379/app", "local:/var/lib/app" or the like`)
	}
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || scheme == "" {
		return bad(`want scheme://host:port/path or scheme:path, such as "zookeeper://h1:2181,h2:2181/app" or "local:/var/lib/app"`)
	}
	for i, r := range scheme {
		if !('a' <= r && r <= 'z' || i > 0 && ('0' <= r && r <= '9' || r == '+' || r == '-' || r == '.')) {
			return bad("a scheme is made of lower-case letters")
		}
	}
	if strings.ContainsRune(rest, '#') {
		return bad("it has a fragment (#)")
	}
	u := &URL{Scheme: scheme}
	rest, query, _ := strings.Cut(rest, "?")
	params, err := url.ParseQuery(query)
	if err != nil {
		return bad("its parameters cannot be read")
	}
	u.params = params
	if strings.ContainsAny(rest, "&;=") { // what follows may be a password, and the rest is printed
		return bad("&, ; or = stands where there are no parameters; these begin with ?, and a path has the characters as %26, %3B and %3D")
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !isParam(name) {
			return bad("a parameter has a name with other characters than letters, digits, dots, hyphens and underscores, or none")
		}
		if slices.ContainsFunc(params[name], func(v string) bool { return strings.HasPrefix(v, "~/") }) {
			return bad(fmt.Sprintf("parameter %q: %s", name, noTilde))
		}
	}

	const credentials = "it carries a user name or password; name a file or an environment variable in a parameter instead"
	authority, hasHosts := strings.CutPrefix(rest, "//")
	if !hasHosts {
		if _, behind, ok := strings.Cut(rest, ":"); ok && strings.Contains(behind, "@") {
			return bad(credentials)
		}
		u.Path, err = url.PathUnescape(rest)
		if err != nil {
			return bad("its path cannot be read")
		}
		if strings.HasPrefix(u.Path, "~") {
			return bad(noTilde) // it would be the name of a folder
		}
		return u, nil
	}
	hosts, path := authority, ""
	if i := strings.IndexByte(authority, '/'); i >= 0 {
		hosts, path = authority[:i], authority[i:]
	}
	if u.Path, err = url.PathUnescape(path); err != nil {
		return bad("its path cannot be read")
	}
	if strings.ContainsRune(authority, '@') { // a password may have a slash
		return bad(credentials)
	}
	if hosts == "" {
		return u, nil
	}
	for h := range strings.SplitSeq(hosts, ",") {
		if err := checkHost(h); err != nil {
			return bad(fmt.Sprintf("host %d: %v", len(u.Hosts)+1, err))
		}
		u.Hosts = append(u.Hosts, h)
	}
	return u, nil
}

// noTilde says what to write instead of ~, which the shell does not replace inside a URL.
const noTilde = `~ is nobody's home folder in a URL; write the whole path, such as "local:$HOME/app"`

// checkHost accepts "host", "host:port", "[v6]" and "[v6]:port". A v6 address may have a zone,
// written as URLs have it (RFC 6874), "[fe80::1%25eth0]", or as package net has it,
// "[fe80::1%eth0]".
func checkHost(h string) error {
	if h == "" {
		return errors.New("it is empty")
	}
	if strings.ContainsAny(h, " \t\r\n\\") || !strings.HasPrefix(h, "[") && strings.Contains(h, "%") {
		return errors.New("it has a character that no host has")
	}
	host, port := h, ""
	if strings.HasPrefix(h, "[") {
		end := strings.IndexByte(h, ']')
		if end < 0 {
			return errors.New("a bracket is not closed")
		}
		host, port = h[1:end], h[end+1:]
		if ip, err := netip.ParseAddr(unescapeZone(host)); err != nil || !ip.Is6() {
			return errors.New("what is in brackets is not an IPv6 address")
		}
		if port == "" {
			return nil
		}
		port, _ = strings.CutPrefix(port, ":")
	} else if i := strings.IndexByte(h, ':'); i >= 0 {
		if strings.Count(h, ":") > 1 {
			return errors.New("write an IPv6 address in brackets, as in [::1]:2181")
		}
		host, port = h[:i], h[i+1:]
	} else {
		return nil
	}
	if host == "" {
		return errors.New("the name is empty")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("the port must be a number from 1 to 65535")
	}
	return nil
}

// unescapeZone returns a host whose zone, if it has one, is as package net has it.
func unescapeZone(h string) string { return strings.Replace(h, "%25", "%", 1) }

// HostPorts returns the hosts as host:port, as package net has them. A host without a port gets
// defaultPort.
func (u *URL) HostPorts(defaultPort string) []string {
	out := make([]string, len(u.Hosts))
	for i, h := range u.Hosts {
		h = unescapeZone(h)
		if _, _, err := net.SplitHostPort(h); err == nil {
			out[i] = h
		} else {
			out[i] = net.JoinHostPort(strings.Trim(h, "[]"), defaultPort)
		}
	}
	return out
}

// String returns the URL for people and logs. It leaves out the values of parameters that look like
// secrets, and all text before an @, which in a path can be a password at the wrong place.
func (u *URL) String() string { return u.print(secretParam) }

// print returns the URL without the values of the parameters for which hide returns true.
func (u *URL) print(hide func(name string) bool) string {
	var b strings.Builder
	b.WriteString(u.Scheme + ":")
	path := inPath.Replace((&url.URL{Path: redact.Path(u.Path)}).EscapedPath())
	if u.Hosts != nil || strings.HasPrefix(u.Path, "//") {
		b.WriteString("//" + strings.Join(u.Hosts, ","))
		path = strings.ReplaceAll(path, "@", "%40") // behind hosts, ParseURL takes what is before an @ for a password
	}
	b.WriteString(path)
	sep := "?"
	for _, k := range sortedKeys(u.params) {
		for _, v := range u.params[k] {
			if v = redactValue(v); hide(k) {
				v = "redacted"
			}
			b.WriteString(sep + url.QueryEscape(k) + "=" + legible.Replace(url.QueryEscape(v)))
			sep = "&"
		}
	}
	return b.String()
}

// inPath escapes the characters that ParseURL accepts in a path only as escapes.
var inPath = strings.NewReplacer("&", "%26", ";", "%3B", "=", "%3D")

// legible undoes the escapes that a parameter does not need.
var legible = strings.NewReplacer("%2F", "/", "%3A", ":", "%2C", ",")

// redactValue returns the value of a parameter for people. The value may be a URL, or contain one.
func redactValue(v string) string {
	if u, err := ParseURL(v); err == nil {
		return u.String()
	}
	if strings.ContainsAny(v, "@?#;") {
		return "redacted"
	}
	return v
}

// isParam reports whether a parameter can have the name.
func isParam(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.')
	})
}

// secretParam reports whether a parameter may hold a secret. One that ends with "-file"
// or "-env" only says where the secret is.
func secretParam(name string) bool {
	n := strings.ToLower(name)
	if strings.HasSuffix(n, "-file") || strings.HasSuffix(n, "-env") {
		return false
	}
	for _, w := range []string{"pass", "pw", "secret", "token", "auth", "key", "cred", "digest", "login", "sig"} {
		if strings.Contains(n, w) {
			return true
		}
	}
	return false
}

// Redact returns rawURL for people and logs, as [URL.String] does. If rawURL cannot be read, it
// shows nothing of it.
func Redact(rawURL string) string {
	u, err := ParseURL(rawURL)
	if err != nil {
		return "(a URL that cannot be read)"
	}
	return u.String()
}

// Text returns the parameter's value, or def if the URL does not have it. [URL.Err] knows
// from then on that the driver has such a parameter.
func (u *URL) Text(name, def string) string {
	u.seen = append(u.seen, name)
	switch v := u.params[name]; len(v) {
	case 0:
		return def
	case 1:
		return v[0]
	default:
		u.bad = append(u.bad, fmt.Sprintf("parameter %s is given %d times", name, len(v)))
		return def
	}
}

// Texts is like [URL.Text] for a parameter that may be given several times. It returns the values in
// their order.
func (u *URL) Texts(name string) []string {
	u.seen = append(u.seen, name)
	return slices.Clone(u.params[name])
}

// Duration is like [URL.Text] for a duration such as 10s. If the value is not a positive
// duration, [URL.Err] says so.
func (u *URL) Duration(name string, def time.Duration) time.Duration {
	v := u.Text(name, "")
	if v == "" {
		return def
	}
	d, err := time.ParseDuration(v)
	if err != nil || d <= 0 {
		u.bad = append(u.bad, fmt.Sprintf("parameter %s=%q is not a duration such as 10s", name, v))
		return def
	}
	return d
}

// Bool is like [URL.Text] for true and false; the default is false. If the value is
// another one, [URL.Err] says so.
func (u *URL) Bool(name string) bool {
	v := u.Text(name, "false")
	if v != "true" && v != "false" {
		u.bad = append(u.bad, fmt.Sprintf("parameter %s=%q is neither true nor false", name, v))
	}
	return v == "true"
}

// Err returns a [backend.ErrInvalid] if a value is wrong, or if there are parameters that the
// driver has not asked for; it then lists the parameters that the driver knows. A driver calls Err
// after it has read its parameters.
func (u *URL) Err() error {
	if len(u.bad) > 0 {
		return fmt.Errorf("%w URL %s: %s", backend.ErrInvalid, u.print(u.unknown), strings.Join(u.bad, "; "))
	}
	for _, name := range sortedKeys(u.params) {
		if slices.Contains(u.seen, name) {
			continue
		}
		known := slices.Clone(u.seen)
		slices.Sort(known)
		list := "there are none"
		if len(known) > 0 {
			list = "known are " + strings.Join(slices.Compact(known), ", ")
		}
		return fmt.Errorf("%w URL %s: unknown parameter %q; %s", backend.ErrInvalid, u.print(u.unknown), name, list)
	}
	return nil
}

// unknown reports whether the driver has not asked for the parameter, or it looks like a secret.
// The value of an unknown parameter may be a secret.
func (u *URL) unknown(name string) bool { return secretParam(name) || !slices.Contains(u.seen, name) }

func sortedKeys(m map[string][]string) []string {
	return slices.Sorted(maps.Keys(m))
}
