package etcd

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/succession-dev/succession/backend/kit/clock"
	"github.com/succession-dev/succession/internal/security"
)

// secure puts what a URL says about TLS and authentication into cfg.
func secure(cfg *clientv3.Config, t security.TLS, l security.Login) (err error) {
	if cfg.TLS, err = t.Config(); err != nil {
		return err
	}
	if cfg.TLS != nil {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithTransportCredentials(reread{credentials.NewTLS(cfg.TLS), t}))
	}
	cfg.Username, cfg.Password, err = l.Read()
	return err
}

// reread is TLS for which the files of a URL are read again at each connection.
type reread struct {
	credentials.TransportCredentials // of the files as they were at first
	tls                              security.TLS
}

func (r reread) ClientHandshake(ctx context.Context, name string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	cfg, err := r.tls.Config()
	if err != nil {
		return nil, nil, err
	}
	if cfg.ServerName != "" {
		// name is the host of the address, which the client has given to gRPC
		// (client/v3/internal/resolver). gRPC would prefer it.
		name = cfg.ServerName
	}
	return credentials.NewTLS(cfg).ClientHandshake(ctx, name, conn)
}

func (r reread) Clone() credentials.TransportCredentials {
	return reread{r.TransportCredentials.Clone(), r.tls}
}

// An authenticator exchanges the password for tokens. The client keeps the password that it
// was given first, and asks for a token for each stream, and when one has become invalid.
//
// For each token etcd hashes the password, which takes it a tenth of a second. With JWT, each
// change of a user or a role makes all tokens invalid. Then all requests of a client ask for a
// token at the same time. So these requests are sent one after the other, and a caller takes a
// token that was asked for after it had come. Because a server may stand still, no caller waits
// longer than minAttempt for the answer to another's request before it sends its own.
type authenticator struct {
	clientv3.Auth
	password *security.Secret

	turn chan struct{} // has a value while one is sent

	mu   sync.Mutex
	sent clock.Instant // of the newest that was answered
	resp *clientv3.AuthenticateResponse
}

func newAuthenticator(auth clientv3.Auth, password *security.Secret) *authenticator {
	return &authenticator{Auth: auth, password: password, turn: make(chan struct{}, 1)}
}

func (a *authenticator) Authenticate(ctx context.Context, user, _ string) (*clientv3.AuthenticateResponse, error) {
	asked := clock.Now()
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	next := sync.OnceFunc(func() { <-a.turn })
	defer next()
	if resp := a.since(asked); resp != nil {
		return resp, nil
	}
	defer time.AfterFunc(minAttempt, next).Stop()
	sent := clock.Now()
	var resp *clientv3.AuthenticateResponse
	err := a.password.Use(isAuthFailed, func(password string) (err error) {
		resp, err = a.Auth.Authenticate(ctx, user, password)
		return err
	})
	if isAuthFailed(err) && a.password.Unsettled() {
		return nil, status.Errorf(codes.Unavailable, "the password was accepted before, and is refused now: %v", err)
	}
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resp == nil || a.sent.Before(sent) {
		a.sent, a.resp = sent, resp
	}
	return resp, nil
}

// since returns a token that was asked for after the given time, or nil.
func (a *authenticator) since(asked clock.Instant) *clientv3.AuthenticateResponse {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resp == nil || asked.Before(a.sent) {
		return a.resp
	}
	return nil
}

// isAuthFailed reports whether etcd refuses the password.
func isAuthFailed(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed) }
