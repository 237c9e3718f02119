package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/backend/kit"
)

// A Backend is a long-lived handle on the Leases of one namespace. It is safe for concurrent use.
type Backend struct {
	o        *Options
	wire     *wire
	sessions *kit.Sessions
	space    string // stands for the prefix in labels
	guards   int    // how many sessions of the prefix watch over all of them

	checked bool // the version of the server is known to do; only open uses it
}

var _ backend.Backend = (*Backend)(nil)

// Open returns a backend for a URL:
//
//	kubernetes://NAMESPACE/PREFIX?ttl=10s&kubeconfig=FILE&context=NAME
//
// Everything is optional. ttl, connect and as are TTL, ConnectTimeout and As of [Options]. Without a namespace, as in kubernetes:///PREFIX or
// kubernetes://, it is the one of the pod, or of the kubeconfig's context.
//
// The API server and the credentials are those of the first that there is of: the parameter kubeconfig, the files of KUBECONFIG, the
// service account of the pod, if it mounts a token, and ~/.kube/config. If the parameter context is there, only a kubeconfig will do. Tokens and
// certificates in files may be replaced while the backend is open.
//
// Open does not connect; [Backend.Session] does. The caller closes the backend.
func Open(u *coordinator.URL) (*Backend, error) {
	cfg, o, err := configOf(u)
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	return New(cfg, o)
}

// configOf returns the configuration that a URL names.
func configOf(u *coordinator.URL) (*rest.Config, *Options, error) {
	o, file, in, err := optionsOf(u)
	if err != nil {
		return nil, nil, err
	}
	cfg, namespace, err := load(file, in)
	if err != nil {
		return nil, nil, fmt.Errorf("%w URL %s: %w", backend.ErrInvalid, u, kit.Brief(err))
	}
	o.Namespace = cmp.Or(o.Namespace, namespace)
	return cfg, o, nil
}

// optionsOf returns the options that a URL names, and the kubeconfig and the context in it. It reads no files. Without a namespace in
// the URL there is none.
func optionsOf(u *coordinator.URL) (o *Options, file, in string, err error) {
	o = &Options{Prefix: strings.Trim(u.Path, "/"), TTL: u.Duration("ttl", 0), ConnectTimeout: u.Duration("connect", 0),
		As: Format(u.Text("as", ""))}
	file, in = u.Text("kubeconfig", ""), u.Text("context", "")
	if len(u.Hosts) > 1 || len(u.Hosts) == 1 && len(validation.IsDNS1123Label(u.Hosts[0])) > 0 {
		return nil, "", "", fmt.Errorf("%w URL %s: write kubernetes://NAMESPACE/PREFIX; the address of the API server is in the kubeconfig", backend.ErrInvalid, u)
	}
	if len(u.Hosts) == 1 {
		o.Namespace = u.Hosts[0]
	}
	return o, file, in, u.Err()
}

// namespaceOfPod returns the namespace of the pod that this process runs in.
func namespaceOfPod() (string, error) {
	name, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	return strings.TrimSpace(string(name)), err
}

// load reads the configuration of a client, and the namespace that it names.
func load(file, context string) (*rest.Config, string, error) {
	nothing := errors.New("this is no pod, and there is no kubeconfig: name one by kubeconfig= or KUBECONFIG")
	if file == "" && context == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		cfg, err := rest.InClusterConfig()
		switch {
		case err == nil:
			namespace, err := namespaceOfPod()
			return cfg, namespace, err
		case errors.Is(err, fs.ErrNotExist):
			nothing = fmt.Errorf("this pod mounts no token, and there is no kubeconfig: set serviceAccountName and automountServiceAccountToken: true: %w", kit.Brief(err))
		case !errors.Is(err, rest.ErrNotInCluster):
			return nil, "", err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	client := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	cfg, err := client.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, "", nothing
	}
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := client.Namespace()
	return cfg, namespace, err
}

// New returns a backend for the API server of cfg, such as [rest.InClusterConfig] or controller-runtime's GetConfigOrDie return. It does
// not block and does not connect: the first Session does. o may be nil. The limits of cfg on the rate of requests, and its Timeout, are
// not used: a session must be renewed in time. Its Transport must be nil; WrapTransport and Dial may be set.
func New(cfg *rest.Config, o *Options) (*Backend, error) {
	o, err := o.filled()
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	if cfg == nil {
		return nil, driver.Wrap("open", "", fmt.Errorf("%w: no rest.Config", backend.ErrInvalid))
	}
	if cfg.Transport != nil {
		return nil, driver.Wrap("open", "", fmt.Errorf("%w: rest.Config.Transport is set, and a session needs connections of its own: use WrapTransport, or Dial", backend.ErrInvalid))
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "succession")
	w, err := newWire(cfg, o)
	if err != nil {
		return nil, driver.Wrap("open", "", err)
	}
	b := &Backend{o: o, wire: w, space: hash("space", o.Prefix), guards: guards}
	b.sessions = kit.NewSessions(kit.Config{Scheme: driver, Open: b.open, Connect: o.ConnectTimeout, Attempt: o.ConnectTimeout / 2, Passing: b.passing, Patience: closeBound})
	return b, nil
}

// Session returns the live session, and opens one if there is none; see [backend.Backend]. It blocks for a round trip or two, at most for
// ConnectTimeout of [Options].
func (b *Backend) Session(ctx context.Context) (backend.Session, error) {
	return b.sessions.Session(ctx)
}

// Close ends the session, if there is one; see [backend.Backend]. It waits for the API server for two seconds at most.
func (b *Backend) Close() error {
	err := b.sessions.Close()
	b.wire.close()
	return err
}

// passing reports whether the error of an opening may pass. So may a refusal at first, because the API server may not know of the
// right yet; see [wire.passing].
func (b *Backend) passing(err error, since time.Duration) bool {
	return lost(err) || errors.Is(err, backend.ErrDenied) && since < b.o.ConnectTimeout/2
}

// The oldest version of Kubernetes that will do.
const major, minor = 1, 31

// checkVersion fails if the API server is older than what this package knows how to use. What it does not tell does not matter.
func (b *Backend) checkVersion(ctx context.Context) error {
	var v struct {
		Major      string `json:"major"`
		Minor      string `json:"minor"`
		GitVersion string `json:"gitVersion"`
	}
	err := b.wire.do(ctx, b.o.ConnectTimeout/2, request{method: http.MethodGet, whole: "/version", accept: whole}, &v)
	switch {
	case errors.Is(err, backend.ErrDenied) || errors.Is(err, errMissing):
		return nil
	case err != nil:
		return err
	}
	older, err := olderThan(v.Major, v.Minor, major, minor)
	if err != nil {
		return strange(err)
	}
	if older {
		return fmt.Errorf("%w server: Kubernetes %.40s is older than %d.%d", backend.ErrInvalid, v.GitVersion, major, minor)
	}
	return nil
}

var leading = regexp.MustCompile(`^[0-9]{1,6}`)

// olderThan reports whether a version is older than another one. Some vendors write a minor version as "31+".
func olderThan(major, minor string, thanMajor, thanMinor int) (bool, error) {
	a, err := strconv.Atoi(leading.FindString(major))
	b, err2 := strconv.Atoi(leading.FindString(minor))
	if err != nil || err2 != nil {
		return false, fmt.Errorf("its version is %.20q.%.20q", major, minor)
	}
	return a < thanMajor || a == thanMajor && b < thanMinor, nil
}
