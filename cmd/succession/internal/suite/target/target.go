package target

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/cmd/succession/internal/connect"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/proxy"
)

// Faults are the faults that [Options] can ask for.
var Faults = slices.Concat(network, []conformance.Fault{conformance.Process, conformance.Remove, conformance.Drop})

// network are the faults that need a proxy in front of each client.
var network = []conformance.Fault{
	conformance.Cut, conformance.Mute, conformance.Deafen, conformance.Sever, conformance.Hide, conformance.Kill,
	conformance.Bytes,
}

// others are the faults that no target can make.
var others = []conformance.Fault{
	conformance.Expire, conformance.LoseAnswer, conformance.HoldBack, conformance.Requests, conformance.Restart, conformance.Pause,
	conformance.Reset, conformance.Compact, conformance.Rewind, conformance.Clock, conformance.Cluster, conformance.Isolate, conformance.Failover,
}

// Options are what is optional in [Open].
type Options struct {
	// Faults are what the suite may make. Nil is none.
	Faults []conformance.Fault
	// Prefix begins the names of all elections and records. Nothing must be stored
	// there. Empty is "succession-conformance-" and something random.
	Prefix string
	// Stand returns a command that runs [conformance.Stand] on the coordinator with that
	// URL. Only the fault process needs it.
	Stand func(url, election, id string) *exec.Cmd
	// Slack and Latency are those of [conformance.Harness]. If Slack is 0, it is what
	// fits the kind of coordinator.
	Slack, Latency time.Duration
}

// A Target is a coordinator on which the suite is to run.
type Target struct {
	raw      string
	url      *coordinator.URL
	driver   coordinator.Driver
	options  Options
	hosts    []string // what the proxies stand in front of
	name     string   // the server-name that the URL needs for them; empty for none
	noProxy  string   // why they cannot stand there; empty if they can
	ttl      time.Duration
	operator coordinator.Operator
	beside   backend.Backend // for [Target.reference]; no fault strikes it
}

func newTarget(rawURL string) (*Target, error) {
	u, err := coordinator.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	d, err := coordinator.DefaultMux.Driver(u)
	if err != nil {
		return nil, err
	}
	t := &Target{raw: rawURL, url: u, driver: d}
	if t.hosts = connect.Servers(u); len(t.hosts) == 0 {
		t.noProxy = "the URL names no server to put a proxy in front of"
	} else if t.name, err = tlsName(u, t.hosts); err != nil {
		t.noProxy = err.Error()
	}
	return t, nil
}

// Open connects to the coordinator that rawURL names, finds out its session time,
// and makes sure that nothing is stored under the prefix. It fails where the options ask
// for a fault that is not possible there.
func Open(ctx context.Context, rawURL string, o Options) (*Target, error) {
	t, err := newTarget(rawURL)
	if err != nil {
		return nil, err
	}
	o.Prefix = cmp.Or(o.Prefix, "succession-conformance-"+strings.ToLower(rand.Text()[:8]))
	if err := backend.CheckName(o.Prefix); err != nil {
		return nil, err
	}
	t.options = o
	u := t.url
	if t.ttl, err = sessionTime(ctx, rawURL); err != nil {
		return nil, err
	}
	if t.operator, err = coordinator.DefaultMux.Operator(u); err != nil {
		return nil, fmt.Errorf("%s: nobody could clear up after the suite: %w", u, err)
	}
	for _, f := range o.Faults {
		if why := t.cannot(f); why != "" {
			return nil, fmt.Errorf("%s: the fault %s is not possible: %s", u, strings.ToLower(string(f)), why)
		}
	}
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	if t.beside, err = succession.Connect(ctx, rawURL); err != nil {
		return nil, err
	}
	return t, nil
}

// Close ends the target. What is stored stays; see [Target.Clear].
func (t *Target) Close() error { return t.beside.Close() }

// ready makes sure that nothing is stored under the prefix, and that the coordinator can
// be reached through the proxies.
func (t *Target) ready(ctx context.Context) error {
	taken, err := t.operator.Exists(ctx, t.options.Prefix)
	if err != nil {
		return fmt.Errorf("%s: looking under %s: %w", t.url, t.options.Prefix, err)
	}
	if taken {
		return fmt.Errorf("%s: something is stored under %s, and would be deleted; choose another prefix", t.url, t.options.Prefix)
	}
	if !t.proxied() {
		return nil
	}
	b, err := t.open(ctx)
	if err != nil {
		return fmt.Errorf("through a proxy, which the faults of the network need: %w", err)
	}
	return b.Close()
}

// sessionTime returns the session time that the coordinator grants.
func sessionTime(ctx context.Context, rawURL string) (time.Duration, error) {
	b, err := succession.Connect(ctx, rawURL)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	s, err := b.Session(ctx)
	if err != nil {
		return 0, err
	}
	return s.TTL(), nil
}

// TTL is the session time that the coordinator grants; 0 for none.
func (t *Target) TTL() time.Duration { return t.ttl }

// Prefix is what the names of all elections and records of the suite begin with.
func (t *Target) Prefix() string { return t.options.Prefix }

// reference deletes a record that is not there, so that nothing is stored and nobody is told. No fault of these touches the
// servers, so an answer that is late says that they, or this machine, are too busy to judge a rule by time.
func (t *Target) reference(ctx context.Context) error {
	s, err := t.beside.Session(ctx)
	if err != nil {
		return err
	}
	return s.Delete(ctx, t.options.Prefix+"/reference", nil)
}

// errNoPrefix is what Clear returns for the empty prefix, under which everything is stored.
var errNoPrefix = errors.New("the prefix is empty")

// Clear deletes everything under the prefix. The caller calls it when the suite is done.
func (t *Target) Clear(ctx context.Context) error {
	if t.options.Prefix == "" {
		return errNoPrefix
	}
	if err := t.operator.Clear(ctx, t.options.Prefix); err != nil {
		return fmt.Errorf("%s: what the suite has left under %s could not be deleted: %w; delete it by hand", t.url, t.options.Prefix, err)
	}
	return nil
}

// Harness returns the harness for the suite.
func (t *Target) Harness() conformance.Harness {
	h := conformance.Harness{
		Name:    t.url.String(),
		TTL:     t.ttl,
		Slack:   t.options.Slack,
		Latency: t.options.Latency,
		Prefix:  t.options.Prefix,
		Open:    t.open,
		Unfit:   t.driver.Unfit,
		Lacks:   make(map[conformance.Fault]string),

		Reference: t.reference,
	}
	h.NotWired = make(map[conformance.Fault]string)
	if h.Slack == 0 && t.driver.Slack != nil {
		h.Slack = t.driver.Slack(t.ttl)
	}
	if t.ttl == 0 {
		h.TTL = time.Second
		h.Lacks[conformance.Deadlines] = "sessions end with their process"
	}
	for _, f := range slices.Concat(Faults, others) {
		why := t.cannot(f)
		switch {
		case why == "":
		case t.serverless():
			h.Lacks[f] = why
		default:
			h.NotWired[f] = why
		}
	}
	all := conformance.Faults{
		Process: func(election, id string) *exec.Cmd { return t.options.Stand(t.raw, election, id) },
		Remove:  t.operator.Remove,
		Drop:    t.operator.Drop,
	}
	all.Network(func(b backend.Backend) []*proxy.Proxy { return b.(*client).proxies })
	from, to := reflect.ValueOf(all), reflect.ValueOf(&h.Faults).Elem()
	for _, f := range Faults {
		switch {
		case t.cannot(f) != "":
		case !t.asked(f):
			h.NotWired[f] = "only with --faults " + strings.ToLower(string(f))
		default: // a fault has the name of its field
			to.FieldByName(string(f)).Set(from.FieldByName(string(f)))
		}
	}
	return h
}

// serverless reports whether the coordinator has no servers, such as this machine.
func (t *Target) serverless() bool { return t.driver.Port == "" && len(t.url.Hosts) == 0 }

// cannot says why the target cannot make a fault; it is empty where it can.
func (t *Target) cannot(f conformance.Fault) string {
	switch {
	case f == conformance.Expire:
		return "a client can end no session but its own"
	case !slices.Contains(others, f) && !slices.Contains(network, f):
		return ""
	case t.serverless():
		return "there is no server"
	case slices.Contains(network, f):
		return t.noProxy
	case f == conformance.LoseAnswer || f == conformance.HoldBack || f == conformance.Requests:
		return "a proxy sees bytes, not requests"
	}
	return "the servers are left alone"
}

// Possible returns the faults that [Options] can ask for on the coordinator with that URL.
func Possible(rawURL string) ([]conformance.Fault, error) {
	t, err := newTarget(rawURL)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(Faults), func(f conformance.Fault) bool { return t.cannot(f) != "" }), nil
}

func (t *Target) asked(f conformance.Fault) bool { return slices.Contains(t.options.Faults, f) }

// proxied reports whether clients are to go through proxies.
func (t *Target) proxied() bool { return slices.ContainsFunc(network, t.asked) }
