package etcd_test

import (
	"context"
	"net"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend/coordinator"
	"github.com/succession-dev/succession/internal/rig/certs"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig"
)

// An operator's acts take effect, and those that find nothing to do succeed.
func TestOperator(t *testing.T) {
	t.Parallel()
	rig.CheckOperator(t, "etcd://"+sharedEtcd(t).Addrs()[0]+"/for-an-operator")
}

// An operator knows all of a URL that the driver knows: a server whose certificate has another name, and an address with a zone.
func TestOperatorURL(t *testing.T) {
	t.Parallel()
	authority := certs.New(t, "authority")
	node := authority.Sign(t, "node", "etcd.example")
	secured := coordtest.NewEtcd(t, &coordtest.EtcdOptions{CertFile: node.File, KeyFile: node.KeyFile})
	rig.CheckOperator(t, "etcd://"+secured.Addrs()[0]+"/app?server-name=etcd.example&ca-file="+authority.File)

	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	forward(l, sharedEtcd(t).Addrs()[0])
	_, port, _ := net.SplitHostPort(l.Addr().String())
	rig.CheckOperator(t, "etcd://[::1%25lo]:"+port+"/for-an-operator-in-a-zone")
}

// An emptyKV answers each transaction with nothing, as something in between can.
type emptyKV struct{ pb.UnimplementedKVServer }

func (*emptyKV) Txn(context.Context, *pb.TxnRequest) (*pb.TxnResponse, error) {
	return &pb.TxnResponse{Header: &pb.ResponseHeader{}, Succeeded: true}, nil
}

// What answers something else than it was asked is no etcd.
func TestOperatorStrangeAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, &emptyKV{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l)
	}()
	defer func() {
		server.Stop()
		<-done
	}()
	u, err := coordinator.ParseURL("etcd://" + l.Addr().String() + "/app")
	if err != nil {
		t.Fatal(err)
	}
	o, err := coordinator.DefaultMux.Operator(u)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Exists(t.Context(), "line"); err == nil || !strings.Contains(err.Error(), "the answer is none to the request") {
		t.Errorf("%v; want an error that says that the answer is none to the request", err)
	}
}
