package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/elect"
)

// An Act is what somebody can do on the page, if that is allowed.
type Act string

// Resign asks a leader to resign.
const Resign Act = "resign"

var acts = []Act{Resign}

// ParseAct returns the act with a name.
func ParseAct(name string) (Act, error) {
	if a := Act(name); slices.Contains(acts, a) {
		return a, nil
	}
	return "", fmt.Errorf("%q is nothing that the page can do; it can do: %v", name, acts)
}

// maxBody is how long the body of a request may be, in bytes.
const maxBody = 8 << 10

// header is one that a page of another site cannot send without being asked about first.
const header = "Succession-Page"

// A wish is the body of a request to act.
type wish struct {
	Name  string `json:"name"`
	Token string `json:"token"` // of the term that the page shows
}

// act returns the handler of an act.
func (s *Server) act(a Act) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !slices.Contains(s.o.Allow, a):
			refuse(w, http.StatusForbidden, fmt.Errorf("this page may only be looked at: start it with --allow %s", a))
			return
		case r.Header.Get(header) != "1" || r.Header.Get("Content-Type") != "application/json":
			refuse(w, http.StatusForbidden, fmt.Errorf("send JSON, and the header %s: 1", header))
			return
		}
		var v wish
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		token, err := strconv.ParseUint(v.Token, 10, 64)
		if err = errors.Join(err, backend.CheckName(v.Name)); err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		l, err := within(r.Context(), func(ctx context.Context) (elect.Leader, error) { return s.w.resign(ctx, v.Name, token) })
		log := s.o.Logger.With("act", a, "election", v.Name, "token", token, "by", r.RemoteAddr)
		switch {
		case errors.Is(err, errOther):
			refuse(w, http.StatusConflict, err)
			return
		case err != nil:
			log.Warn("an act has failed", "err", err)
			refuse(w, http.StatusBadGateway, err)
			return
		}
		log.Info("acted", "id", l.ID)
		w.WriteHeader(http.StatusNoContent)
	}
}

// errOther says that another leads than the page has shown.
var errOther = errors.New("another leads by now, or nobody does")

// resign asks the leader with the token to resign.
func (w *watcher) resign(ctx context.Context, name string, token uint64) (elect.Leader, error) {
	e := elect.New(w.b, name, nil)
	l, err := e.Leader(ctx)
	if err == nil && l.Pinned {
		return l, errors.New("it stands first for ever, and cannot resign")
	}
	if err == nil {
		l, err = e.AskToResign(ctx, &elect.ResignOptions{Token: token})
	}
	if errors.Is(err, elect.ErrNoLeader) || errors.Is(err, elect.ErrOtherLeader) {
		err = errOther
	}
	return l, err
}
