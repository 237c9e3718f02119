package etcd_test

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
	"github.com/succession-dev/succession/internal/rig/coordtest/rig/etcdrig"
)

// TestGuardSeesPin holds up a guarded write until the guarding member is pinned, as a
// leader does when it seals its election. Then the write must not be done: another
// coordinator has taken the records over. A write that is sent after the pin is done.
func TestGuardSeesPin(t *testing.T) {
	t.Parallel()
	addr := sharedEtcd(t).Addrs()[0]
	operator := pb.NewKVClient(admin(t, addr).ActiveConnection())
	for _, op := range []string{"put", "delete", "remove"} {
		t.Run(op, func(t *testing.T) {
			c := newClient(t, addr)
			s, name := c.session(t), coordtest.Name(t)
			record := name + "-record"
			m := join(t, s, name, "x")
			if _, err := s.Put(t.Context(), record, []byte("kept"), nil); err != nil {
				t.Fatal(err)
			}
			item, err := s.Append(t.Context(), name+"-items", "kept")
			if err != nil {
				t.Fatal(err)
			}

			var held *pb.TxnRequest
			c.meter.steps(func(r *pb.TxnRequest, send func() error) error {
				if !etcdrig.Writes(r) {
					return send()
				}
				held = r
				return status.Error(codes.Unavailable, "the server stands still")
			})
			write := func(ctx context.Context, m backend.Member) error {
				switch op {
				case "delete":
					return s.Delete(ctx, record, &backend.If{Member: m})
				case "remove":
					return s.Remove(ctx, item, m)
				}
				_, err := s.Put(ctx, record, []byte("late"), &backend.If{Member: m})
				return err
			}
			if err := write(t.Context(), m); !errors.Is(err, backend.ErrUnavailable) || held == nil {
				t.Fatalf("a write without an answer: %v; want ErrUnavailable", err)
			}
			c.meter.steps(nil)
			if err := s.Pin(t.Context(), m, backend.Header{Sealed: "elsewhere"}, backend.Absent); err != nil {
				t.Fatal(err)
			}
			if _, err := operator.Txn(t.Context(), held); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Get(t.Context(), record); err != nil || string(r.Value) != "kept" {
				t.Errorf("after a write that was sent before the seal and came after it, the record is %q, %v; want it as it was", r.Value, err)
			}
			if l, err := s.Line(t.Context(), item.Line); err != nil || len(l.Members) != 1 {
				t.Errorf("after a write that was sent before the seal and came after it, the items are %+v, %v; want the one", l.Members, err)
			}

			for _, pinned := range []bool{false, true} { // it was joined as one that is not
				m.Pinned = pinned
				if err := write(t.Context(), m); err != nil {
					t.Errorf("a write on condition of a pinned member (known as pinned: %t): %v", pinned, err)
				}
			}
			if err := s.Leave(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if err := write(t.Context(), m); !errors.Is(err, backend.ErrNotMember) {
				t.Errorf("a write on condition of a pinned member that left: %v; want ErrNotMember", err)
			}
		})
	}
}
