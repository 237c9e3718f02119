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
// token that was asked for after it had come. Because a server may stand still, the next one is
// sent after minAttempt although that before is not answered; the one after it waits for twice as
// long, and so on, up to 16 times. For the server may just be busy, with these very requests.
type authenticator struct {
	clientv3.Auth
	password *security.Secret

	turn chan struct{} // has a value while one is sent

	mu       sync.Mutex
	underWay int           // how many are sent and not answered
	sent     clock.Instant // of the newest that was answered
	resp     *clientv3.AuthenticateResponse
	answered chan struct{} // closed, and made anew, when one is answered
}

func newAuthenticator(auth clientv3.Auth, password *security.Secret) *authenticator {
	return &authenticator{Auth: auth, password: password, turn: make(chan struct{}, 1), answered: make(chan struct{})}
}

func (a *authenticator) Authenticate(ctx context.Context, user, _ string) (*clientv3.AuthenticateResponse, error) {
	if resp, err := a.wait(ctx); resp != nil || err != nil {
		return resp, err
	}
	next := sync.OnceFunc(func() { <-a.turn })
	defer next()
	limit, sent := a.send()
	defer time.AfterFunc(limit, next).Stop()
	var resp *clientv3.AuthenticateResponse
	err := a.password.Use(isAuthFailed, func(password string) (err error) {
		resp, err = a.Auth.Authenticate(ctx, user, password)
		return err
	})
	a.end(sent, resp)
	if isAuthFailed(err) && a.password.Unsettled() {
		return nil, status.Errorf(codes.Unavailable, "the password was accepted before, and is refused now: %v", err)
	}
	return resp, err
}

// wait returns a token that was asked for after wait was called, or nil when it is the caller's turn to ask.
func (a *authenticator) wait(ctx context.Context) (*clientv3.AuthenticateResponse, error) {
	asked := clock.Now()
	for {
		resp, answered := a.since(asked)
		if resp != nil {
			return resp, nil
		}
		select {
		case a.turn <- struct{}{}:
			if resp, _ := a.since(asked); resp != nil {
				<-a.turn
				return resp, nil
			}
			return nil, nil
		case <-answered:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// since returns a token that was asked for after the given time, or nil, and what the next token closes.
func (a *authenticator) since(asked clock.Instant) (*clientv3.AuthenticateResponse, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resp == nil || asked.Before(a.sent) {
		return a.resp, a.answered
	}
	return nil, a.answered
}

// send notes that a request is sent now, and returns after how long the next one may be although this one
// is not answered.
func (a *authenticator) send() (limit time.Duration, sent clock.Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit = minAttempt << min(a.underWay, 4)
	a.underWay++
	return limit, clock.Now()
}

// end notes that the request that was sent then is over, and its token, which is nil if it has none.
func (a *authenticator) end(sent clock.Instant, resp *clientv3.AuthenticateResponse) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underWay--
	if resp == nil || a.resp != nil && sent.Before(a.sent) {
		return
	}
	a.sent, a.resp = sent, resp
	close(a.answered)
	a.answered = make(chan struct{})
}

// isAuthFailed reports whether etcd refuses the password.
func isAuthFailed(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed) }
