package rig

import (
	"context"
	"errors"

	"github.com/succession-dev/succession/conformance/proxy"
)

// A Client is what stands between one client and its coordinator: a proxy of its own,
// and what takes the coordinator's protocol to see or to do. Each coordinator has a
// package for it: zookeeperrig, etcdrig, consulrig.
type Client interface {
	Proxy() *proxy.Proxy
	// Expire has the coordinator end the newest session that the client has opened. It
	// fails with [ErrNoSession] where there is none.
	Expire(ctx context.Context) error
	// LoseAnswer lets the client's next write take effect and loses its answer.
	LoseAnswer()
	// HoldBack lets skip writes of the client pass, and holds the next one back until release is called; see
	// [conformance.Faults].
	HoldBack(skip int) (held func() bool, release func())
	// Requests is how many requests the client has sent.
	Requests() int64
	// Close frees everything, when the backend is closed. Closing twice does no harm.
	Close()
}

// ErrNoSession says that a client has opened no session.
var ErrNoSession = errors.New("the client has opened no session")
