package etcd

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A conn is the connection of a client, and has each request sent once. The client takes
// it for its own deadline when a proxy that has lost its patience answers Canceled or
// DeadlineExceeded, and sends a write again (client/v3/retry_interceptor.go), although the
// first may have been done. Whoever is to send a request again must know of that.
type conn struct{ *grpc.ClientConn }

var _ grpc.ClientConnInterface = conn{}

// Invoke sends one request and waits for its answer.
func (c conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	once := grpc.OnFinish(func(err error) {
		if code := status.Code(err); code == codes.Canceled || code == codes.DeadlineExceeded {
			cancel() // nothing is sent again after that
		}
	})
	return c.ClientConn.Invoke(ctx, method, args, reply, append(opts, once)...)
}
