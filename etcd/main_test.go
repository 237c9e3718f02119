package etcd_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/conformance/proxy"
	"github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// ttl is for tests that await the end of a session, or what comes with heartbeats. It is not the shortest that etcd
// grants, which is a second: on a machine that is busy with other tests, a healthy session would not survive that.
const ttl = 4 * time.Second

// opening is how long it may take to open a session that a test needs.
const opening = 20 * time.Second

// shared is the etcd of all tests that do it no harm.
var shared struct {
	once sync.Once
	etcd *coordtest.Etcd
	err  error
}

func TestMain(m *testing.M) {
	rig.Candidate()
	coordtest.Main(m, 16, func() {
		if shared.etcd != nil {
			shared.etcd.Stop()
		}
	})
}

func sharedEtcd(t testing.TB) *coordtest.Etcd {
	t.Helper()
	shared.once.Do(func() { shared.etcd, shared.err = coordtest.StartEtcd(context.Background(), nil) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.etcd
}

// admin returns a client that ends with the test.
func admin(t testing.TB, addrs ...string) *clientv3.Client {
	t.Helper()
	c, err := etcdrig.Dial(addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A client is a backend with a connection of its own, which goes through a proxy.
type client struct {
	*etcd.Backend
	rig   *etcdrig.Client
	proxy *proxy.Proxy
	meter meter
}

// open returns a new client of the server at addr; the caller closes it.
func open(addr string, o *etcd.Options) (*client, error) {
	c := new(client)
	var err error
	if c.rig, err = etcdrig.Start(addr, grpc.WithChainUnaryInterceptor(c.meter.intercept)); err != nil {
		return nil, err
	}
	c.proxy = c.rig.Proxy()
	if c.Backend, err = etcd.New(c.rig.Client, o); err != nil {
		c.rig.Close()
		return nil, err
	}
	return c, nil
}

// newClient is open for one test: the client is closed when the test ends. The test does not await the end of
// its session.
func newClient(t testing.TB, addr string) *client {
	t.Helper()
	return newClientOf(t, addr, patient)
}

// newClientOf is newClient with another session time.
func newClientOf(t testing.TB, addr string, ttl time.Duration) *client {
	t.Helper()
	c, err := open(addr, &etcd.Options{TTL: ttl, ConnectTimeout: opening})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (c *client) Close() error {
	err := c.Backend.Close()
	c.rig.Close()
	return err
}

// session returns the client's session.
func (c *client) session(t testing.TB) backend.Session {
	t.Helper()
	s, err := c.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A meter changes etcd's term in answers, denies the list of etcd's members, spoils answers, and lets
// a test step in before transactions.
type meter struct {
	otherTerm atomic.Bool
	unlisted  atomic.Bool
	spoil     atomic.Pointer[func(*pb.TxnResponse)] // the next answer to a transaction
	stepIn    atomic.Pointer[stepIn]
}

// A stepIn is called in place of sending a transaction. It may call send, which sends it.
// The client gets its result.
type stepIn func(r *pb.TxnRequest, send func() error) error

func (m *meter) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	send := func() error { return invoke(ctx, method, req, reply, cc, opts...) }
	if r, ok := req.(*pb.TxnRequest); ok {
		if f := m.stepIn.Load(); f != nil {
			return (*f)(r, send)
		}
	}
	if _, ok := req.(*pb.MemberListRequest); ok && m.unlisted.Load() {
		return rpctypes.ErrGRPCPermissionDenied
	}
	if err := send(); err != nil {
		return err
	}
	if r, ok := reply.(*pb.TxnResponse); ok {
		if f := m.spoil.Swap(nil); f != nil {
			(*f)(r)
		}
	}
	if r, ok := reply.(interface{ GetHeader() *pb.ResponseHeader }); ok && m.otherTerm.Load() {
		r.GetHeader().RaftTerm++ // a leader looks again at its place, too, and that says the term as well
	}
	return nil
}

// steps makes f step in, until steps is called again; nil is nobody.
func (m *meter) steps(f stepIn) {
	if f == nil {
		m.stepIn.Store(nil)
		return
	}
	m.stepIn.Store(&f)
}

func join(t testing.TB, s backend.Session, line, value string) backend.Member {
	t.Helper()
	m, err := s.Join(t.Context(), line, value, "")
	if err != nil {
		t.Fatal(err)
	}
	return m.Member
}

// keys returns the keys below a prefix.
func keys(t testing.TB, c *clientv3.Client, prefix string) []string {
	t.Helper()
	resp, err := c.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, kv := range resp.Kvs {
		out = append(out, string(kv.Key))
	}
	return out
}

// within returns a context that ends after d.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
