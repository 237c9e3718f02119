package etcd

import (
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/succession-dev/succession/backend"
)

// Anybody may put keys with any name and value below an election. One that is taken for a member is at the key that is asked
// about it, and its value is text.
func FuzzMember(f *testing.F) {
	for _, s := range []struct {
		key, value string
		lease      int64
	}{
		{"app/e/5ecc0123456789ab", "web-1", 7}, {"app/e/5ecc0123456789ab-2-shared", "\xff", 0}, {"app/e/", "", 7}, {"app/e/x/y", "", 7},
		{"app/e", `{"succession":2,"fence":"7"}`, 0}, {"app/e/x", "", 0}, {"other", "", 1}, {"app/e/../x", "", 1}, {"app/e/\x00", "", 1},
	} {
		f.Add([]byte(s.key), []byte(s.value), s.lease, int64(9))
	}
	b := &Backend{o: Options{Prefix: "app/"}}
	f.Fuzz(func(t *testing.T, key, value []byte, lease, revision int64) {
		kv := &mvccpb.KeyValue{Key: key, Value: value, Lease: lease, CreateRevision: revision, ModRevision: revision}
		if m, ok := b.memberOf("e", kv); ok {
			if b.member(m) != string(key) || m.Line != "e" || m.Pinned != (lease == 0) || !utf8.ValidString(m.Value) {
				t.Errorf("%q is taken for %+v", key, m)
			}
			if m.Pinned && !ourMember.MatchString(m.Key) {
				t.Errorf("the record %q is taken for a member", key)
			}
		}
		r := &pb.RangeResponse{Kvs: []*mvccpb.KeyValue{kv}}
		if h, err := headerOf(r); err == nil {
			if again, err := backend.ParseHeader(h.Encode()); err != nil || again != h {
				t.Errorf("the header %q is %+v, and written again %+v, %v", value, h, again, err)
			}
		}
		if rec := recordOf("e", r); string(rec.Value) != string(value) || rec.Version != backend.Version(revision) {
			t.Errorf("the record is %+v", rec)
		}
	})
}

// Who says that there are more keys has told some. Otherwise a session would take the last of none, or ask for ever.
func TestMoreThanNothing(t *testing.T) {
	ask := txn{then: []clientv3.Op{clientv3.OpGet("app/e/", clientv3.WithPrefix(), clientv3.WithLimit(2))}}
	for more, want := range map[bool]bool{false: true, true: false} {
		answer := &pb.TxnResponse{Header: new(pb.ResponseHeader), Succeeded: true, Responses: []*pb.ResponseOp{
			{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{More: more}}},
		}}
		if got := ask.answeredBy((*clientv3.TxnResponse)(answer)); got != want {
			t.Errorf("no keys, and more of them: %t; taken for an answer: %t", more, got)
		}
	}
}

// A server, or what stands in between, may answer anything. What is taken for an answer to the request can be taken apart.
func FuzzAnswer(f *testing.F) {
	wire := encoding.GetCodecV2("proto") // the messages of old clients and of new ones have other methods
	line := txn{then: []clientv3.Op{clientv3.OpGet("app/e/", clientv3.WithPrefix()), clientv3.OpGet("app/e")}}
	found := func(key string) *pb.ResponseOp {
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{
			Kvs: []*mvccpb.KeyValue{{Key: []byte(key), Value: []byte("{}"), CreateRevision: 7, ModRevision: 7, Lease: 1}}, Count: 1,
		}}}
	}
	for _, r := range []*pb.TxnResponse{
		{Header: &pb.ResponseHeader{Revision: 9}, Succeeded: true, Responses: []*pb.ResponseOp{found("app/e/1"), found("app/e")}},
		{Succeeded: true, Responses: []*pb.ResponseOp{found("app/e")}}, {Succeeded: true, Responses: []*pb.ResponseOp{{}, {}}}, {},
	} {
		b, err := wire.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b.Materialize())
	}
	b := &Backend{o: Options{Prefix: "app/"}}
	f.Fuzz(func(t *testing.T, answer []byte) {
		resp := new(pb.TxnResponse)
		if wire.Unmarshal(mem.BufferSlice{mem.SliceBuffer(answer)}, resp) != nil || !line.answeredBy((*clientv3.TxnResponse)(resp)) {
			return
		}
		for _, kv := range rangeOf((*clientv3.TxnResponse)(resp), 0).Kvs {
			b.memberOf("e", kv)
		}
		_, _ = headerOf(rangeOf((*clientv3.TxnResponse)(resp), 1))
		versionOf(rangeOf((*clientv3.TxnResponse)(resp), 1))
	})
}

// Whichever server has chosen the lease ID of a foreign client, its member looks like one.
func TestMemberOfAnyServer(t *testing.T) {
	started := uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()) & (1<<40 - 1)
	for _, server := range []uint64{0, 1, 0xf, 0xff, 0xfff, 0x7fff} {
		if name := strconv.FormatUint(server<<48|started<<8|1, 16); !anyMember.MatchString(name) {
			t.Errorf("%s, a lease of the server %x, does not look like a member", name, server)
		}
	}
}
