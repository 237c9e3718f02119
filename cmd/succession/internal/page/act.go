package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
)

// An Act is what somebody can do on the page, if that is allowed.
type Act string

const (
	// Resign asks a leader to resign, also in favour of another candidate.
	Resign Act = "resign"
	// Pause lets nobody lead, and then somebody again.
	Pause Act = "pause"
)

var acts = []Act{Resign, Pause}

// ParseAct returns the act with a name.
func ParseAct(name string) (Act, error) {
	if a := Act(name); slices.Contains(acts, a) {
		return a, nil
	}
	return "", fmt.Errorf("%q is nothing that the page can do; it can do: %v", name, acts)
}

// maxBody is how long the body of a request may be, in bytes.
const maxBody = 8 << 10

// ownHeader is one that a page of another site cannot send without being asked about first.
const ownHeader = "Succession-Page"

// A wish is the body of a request to act.
type wish struct {
	Name   string `json:"name"`
	Token  string `json:"token"`  // of the term, or of the gate, that the page shows
	To     string `json:"to"`     // the key of who is to lead next
	Reason string `json:"reason"` // of a pause, or for which somebody is to resign

	token uint64
	by    string // who wishes
}

// A deed is what a request asks for, if its act is allowed.
type deed struct {
	act   Act
	named bool // it is done to the term, or the gate, that the page shows
	do    func(context.Context, wish) error
}

func (p *page) deeds() map[string]deed {
	return map[string]deed{
		"resign": {Resign, true, p.w.resign},
		"pause":  {Pause, false, p.w.pause},
		"resume": {Pause, true, p.w.resume},
	}
}

// act returns the handler of a deed.
func (p *page) act(name string, d deed) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := p.may(r, d.act); err != nil {
			refuse(w, http.StatusForbidden, err)
			return
		}
		if r.Header.Get(ownHeader) != "1" || r.Header.Get("Content-Type") != "application/json" {
			refuse(w, http.StatusForbidden, fmt.Errorf("send JSON, and the header %s: 1", ownHeader))
			return
		}
		v, err := readWish(http.MaxBytesReader(w, r.Body, maxBody), d.named)
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		if !p.acts.take() {
			refuse(w, http.StatusServiceUnavailable, errManyActs)
			return
		}
		defer p.acts.give()
		if err := p.awaitListed(r.Context(), v.Name); err != nil {
			refuse(w, codeOfList(err), err)
			return
		}
		v.by = p.by(r)
		err = d.do(r.Context(), v)
		log := p.w.log.With("act", name, "election", v.Name, "token", v.Token, "to", v.To, "reason", v.Reason, "user", visitorOf(r).user, "from", r.RemoteAddr)
		if err != nil {
			log.Warn("an act has failed", "err", err)
			refuse(w, codeOf(err), err)
			return
		}
		log.Info("acted")
		w.WriteHeader(http.StatusNoContent)
	}
}

// readWish reads a wish, which must have a token if it is about one.
func readWish(body io.Reader, named bool) (v wish, err error) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, err
	}
	if named {
		v.token, err = strconv.ParseUint(v.Token, 10, 64)
		if err == nil && v.token == 0 { // which would be whatever is there by now
			err = errors.New("the token is 0")
		}
	}
	return v, errors.Join(err, backend.CheckName(v.Name))
}

// may fails, with the reason, if whoever asks may not do that.
func (s *Server) may(r *http.Request, a Act) error {
	switch v := visitorOf(r); {
	case !slices.Contains(s.o.Allow, a):
		return fmt.Errorf("this is not allowed on the page: start it with --allow %s", a)
	case v.looks:
		return errors.New("this token is for looking only")
	case s.o.UserHeader != "" && v.user == "":
		return fmt.Errorf("nobody acts here without a name: come by the proxy, which says it in %s, beside the token", s.o.UserHeader)
	}
	return nil
}

// by says who asks: the one whom a proxy names; the one who has started the page; and the address, if it is of another machine and
// not that of the proxy.
func (s *Server) by(r *http.Request) string {
	by := "the page of " + cmp.Or(s.o.By, "somebody")
	if user := visitorOf(r).user; user != "" {
		return user + ", on " + by
	}
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && !at.Addr().Unmap().IsLoopback() {
		by += ", for " + at.Addr().Unmap().String()
	}
	return by
}

var (
	// errOther says that something else is the case than the page has shown.
	errOther = errors.New("another leads by now, or nobody does")
	// errPauseOther is the same for a gate.
	errPauseOther = errors.New("another pause holds by now, or none does")
	// errSlow says that an act goes on after its answer.
	errSlow = fmt.Errorf("not within %v", pauseBound)
)

// codeOf returns the status code for an act that has failed.
func codeOf(err error) int {
	is := func(all ...error) bool {
		return slices.ContainsFunc(all, func(target error) bool { return errors.Is(err, target) })
	}
	switch {
	case is(errSlow):
		return http.StatusGatewayTimeout
	case is(errOther, errPauseOther, elect.ErrPaused, operate.ErrMoving, elect.ErrNotReady, backend.ErrSealed):
		return http.StatusConflict
	case is(backend.ErrInvalid):
		return http.StatusBadRequest
	case is(errors.ErrUnsupported):
		return http.StatusNotImplemented
	}
	return http.StatusBadGateway
}

// resign asks the leader with the token to resign.
func (w *watcher) resign(ctx context.Context, v wish) error {
	_, err := within(ctx, func(ctx context.Context) (elect.Leader, error) {
		return operate.New(w.b, v.Name, v.by).AskToResign(ctx, &operate.ResignOptions{Token: v.token, To: v.To, Reason: v.Reason})
	})
	if errors.Is(err, operate.ErrOtherLeader) || errors.Is(err, elect.ErrNoLeader) && !errors.Is(err, elect.ErrPaused) {
		return errOther
	}
	return err
}

// pauseBound is how long an answer waits until nobody leads. It is shorter than what bounds the request.
const pauseBound = 5 * time.Second

// pause closes the election. It waits a while until nobody leads.
func (w *watcher) pause(ctx context.Context, v wish) error {
	if strings.TrimSpace(v.Reason) == "" {
		return fmt.Errorf("%w reason: say why the election is paused", backend.ErrInvalid)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pauseBound, errSlow)
	defer cancel()
	gate, err := operate.New(w.b, v.Name, v.by).Pause(ctx, v.Reason)
	if errors.Is(err, errSlow) && gate.Key == "" {
		return fmt.Errorf("%w: it is not paused: %v", backend.ErrUnavailable, err)
	}
	return err
}

// resume opens the election that the gate with the token has closed.
func (w *watcher) resume(ctx context.Context, v wish) error {
	_, err := within(ctx, func(ctx context.Context) (elect.Candidate, error) {
		return operate.New(w.b, v.Name, v.by).Resume(ctx, &operate.ResumeOptions{Token: v.token})
	})
	if errors.Is(err, operate.ErrNotPaused) {
		return errPauseOther
	}
	return err
}
