package etcd_test

import (
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// TestStrangeAnswers spoils answers, as a broken server or proxy does. What may be sent again is
// sent again; the rest fails.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	c := newClient(t, sharedEtcd(t).Addrs()[0])
	s := c.session(t)
	spoilt := map[string]func(*pb.TxnResponse){
		"nothing":              func(r *pb.TxnResponse) { *r = pb.TxnResponse{Succeeded: r.Succeeded} },
		"no header":            func(r *pb.TxnResponse) { r.Header = nil },
		"one result less":      func(r *pb.TxnResponse) { r.Responses = r.Responses[1:] },
		"one result more":      func(r *pb.TxnResponse) { r.Responses = append(r.Responses, r.Responses[0]) },
		"results without kind": func(r *pb.TxnResponse) { r.Responses[0] = new(pb.ResponseOp) },
		"another branch":       func(r *pb.TxnResponse) { r.Succeeded, r.Responses = !r.Succeeded, nil },
		"another key": func(r *pb.TxnResponse) {
			for i := range r.Responses {
				r.Responses[i] = &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{
					Kvs: []*mvccpb.KeyValue{{Key: []byte("x")}},
				}}}
			}
		},
	}
	for name, f := range spoilt {
		t.Run(name, func(t *testing.T) {
			spoil := func() { c.meter.spoil.Store(&f) }
			line := coordtest.Name(t)
			spoil()
			m := lead(t, s, line)
			spoil()
			standsFirst(t, s, m)
			spoil()
			if _, err := s.Line(t.Context(), line); err != nil {
				t.Errorf("Line: %v", err)
			}
			spoil()
			if _, err := s.List(t.Context(), line); err != nil {
				t.Errorf("List: %v", err)
			}
			spoil()
			if _, err := s.Put(t.Context(), line+"/record", nil, &backend.If{Member: m}); !errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("Put: %v; want ErrUnavailable", err)
			}
			spoil()
			if err := s.Leave(t.Context(), m); err != nil {
				t.Errorf("Leave: %v", err)
			}
		})
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}
