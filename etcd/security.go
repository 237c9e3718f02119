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
// For each token etcd hashes the password, which takes it a tenth of a second, and more if it is
// busy. With JWT, each change of a user or a role makes all tokens invalid. Then all requests of a
// client ask for a token at the same time. So these requests are sent one after the other, and a
// caller takes whichever token comes first after it has come itself. If that one is invalid already,
// the client asks again.
//
// A caller may give up before its token comes, as heartbeats do soon, and etcd hashes on. So a request
// outlives its caller, and its token serves who waits then. Because a server may stand still, the next
// request is sent after minAttempt although that before is not answered; the one after it waits for
// twice as long, and so on, up to 16 times. For the server may just be busy, with these very requests.
type authenticator struct {
	clientv3.Auth
	client   context.Context // of the client, which ends with it
	password *security.Secret

	turn    chan struct{} // has a value while the next request may not be sent
	running sync.WaitGroup

	mu       sync.Mutex
	underWay int           // how many are sent and not answered
	sent     clock.Instant // when that was sent whose token came last
	next     *outcome
	ended    bool // the client has
}

// An outcome is that of a request for a token.
type outcome struct {
	done chan struct{} // closed when resp and err are set
	resp *clientv3.AuthenticateResponse
	err  error
}

// tokenLimit is how long a request for a token waits for its answer.
const tokenLimit = 10 * time.Second

func newAuthenticator(client context.Context, auth clientv3.Auth, password *security.Secret) *authenticator {
	return &authenticator{Auth: auth, client: client, password: password, turn: make(chan struct{}, 1), next: newOutcome()}
}

func newOutcome() *outcome { return &outcome{done: make(chan struct{})} }

// Authenticate returns the next token that comes. It asks for one once, when it is its turn.
func (a *authenticator) Authenticate(ctx context.Context, user, _ string) (*clientv3.AuthenticateResponse, error) {
	own, turn := newOutcome(), a.turn
	a.mu.Lock()
	next := a.next
	a.mu.Unlock()
	for {
		select {
		case <-next.done:
			return next.resp, next.err
		case <-own.done:
			return own.resp, own.err
		case <-ctx.Done():
			return nil, ctx.Err()
		case turn <- struct{}{}:
			turn = nil
			select {
			case <-next.done:
				<-a.turn
			default:
				if err := a.start(ctx, user, own); err != nil {
					<-a.turn
					return nil, err
				}
			}
		}
	}
}

// start has ask run, unless ctx or the client has ended.
func (a *authenticator) start(ctx context.Context, user string, own *outcome) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if a.ended {
		return context.Canceled
	}
	a.running.Go(func() { a.ask(ctx, user, own) })
	return nil
}

// end returns when no ask runs any more, and none will. The client has ended.
func (a *authenticator) end() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.running.Wait()
}

// ask sends one request, and sets own. It takes the values of ctx, and not its end. The next request may be
// sent when ask has returned, or after some time.
func (a *authenticator) ask(ctx context.Context, user string, own *outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tokenLimit)
	defer cancel()
	defer context.AfterFunc(a.client, cancel)()
	next := sync.OnceFunc(func() { <-a.turn })
	defer next()
	limit, sent := a.send()
	defer time.AfterFunc(limit, next).Stop()
	own.err = a.password.Use(isAuthFailed, func(password string) (err error) {
		own.resp, err = a.Auth.Authenticate(ctx, user, password)
		return err
	})
	refused := isAuthFailed(own.err)
	if refused && a.password.Unsettled() {
		own.err = status.Errorf(codes.Unavailable, "the password was accepted before, and is refused now: %v", own.err)
	}
	a.tell(sent, own, refused)
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

// tell notes that the request that was sent then is over. A token is for all who wait, and so is a refusal
// of the password.
func (a *authenticator) tell(sent clock.Instant, own *outcome, refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(own.done)
	a.underWay--
	if own.err != nil && !refused || sent.Before(a.sent) {
		return
	}
	a.sent = sent
	a.next.resp, a.next.err = own.resp, own.err
	close(a.next.done)
	a.next = newOutcome()
}

// isAuthFailed reports whether etcd refuses the password.
func isAuthFailed(err error) bool { return errors.Is(rpctypes.Error(err), rpctypes.ErrAuthFailed) }
