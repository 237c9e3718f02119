package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// sendOnce sends one request by do, a method of the client, and waits for the answer. A
// proxy that has lost its patience answers Canceled or DeadlineExceeded. The client takes
// that for its own deadline, and sends a write again (client/v3/retry_interceptor.go),
// although the first may have been done. Only the caller of sendOnce knows whether the
// request may be sent again.
func sendOnce[Request, Response any](ctx context.Context, do func(context.Context, Request, ...grpc.CallOption) (Response, error), request Request, opts ...grpc.CallOption) (Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	finished := grpc.OnFinish(func(err error) {
		if code := status.Code(err); code == codes.Canceled || code == codes.DeadlineExceeded {
			cancel() // nothing is sent again after that
		}
	})
	return do(ctx, request, append([]grpc.CallOption{finished}, opts...)...) // the client uses opts again
}

// A kvClient sends each transaction once. The driver makes no other request of it.
type kvClient struct{ pb.KVClient }

func (c kvClient) Txn(ctx context.Context, request *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	return sendOnce(ctx, c.KVClient.Txn, request, append(opts, grpc.MaxCallRecvMsgSize(maxAnswer))...)
}
