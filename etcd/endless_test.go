package etcd_test

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/succession-dev/succession/backend"
)

// raw sends bytes as they are.
type raw struct{}

func (raw) Name() string                    { return "proto" }
func (raw) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (raw) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

// An answer that is larger than any line is not read, and the error says so.
func TestEndlessAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 129<<20)
	s := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return stream.SendMsg(answer)
	}))
	t.Cleanup(s.Stop)
	go s.Serve(l)
	_, err = backend.Open(t.Context(), "etcd://"+l.Addr().String()+"?connect=2s")
	if err == nil || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("Open returned %v", err)
	}
}
