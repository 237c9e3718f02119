package page

import (
	"context"
	"embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

//go:embed assets
var assets embed.FS

var templates = template.Must(template.ParseFS(assets, "assets/*.html"))

// Options are the settings of a [Server].
type Options struct {
	// URL and Names are those of the only coordinator, as in [Coordinator]. Of several each has its own.
	URL   string
	Names []string
	// Hosts are the names that the server is reached by, beside its addresses.
	Hosts []string
	// Token is what whoever asks must have; empty means that nobody needs any.
	Token string
	// LookToken is another one, for those who may only look; empty means that there is none.
	LookToken string
	// UserHeader is the header in which a proxy says who asks. It is believed in requests that have a token in the header
	// Authorization, and then nobody acts without a name. Empty means that there is none.
	UserHeader string
	// BasePath is where the page begins, as in "/elections"; empty means at "/".
	BasePath string
	// Allow are the acts that the page offers. Nil means none.
	Allow []Act
	// By is who has started the page: whoever looks at an election that was paused there sees it. Empty
	// means that nobody says.
	By string
	// Logger is told of acts, and when a coordinator cannot be reached. Nil discards.
	Logger *slog.Logger
}

// A Server serves the page of a coordinator, or those of several and an overview of them. It is safe for concurrent use. Whoever
// serves it must set [http.Server] so that Close is called before the server waits for its requests: streams do not
// end by themselves.
type Server struct {
	o       Options
	guard   *guard
	root    *http.ServeMux // of the only page, or of the overview
	pages   []*page
	streams quota // of all pages, and of the overview
	bell    bell  // rings at each change on any page
	life    context.Context
	end     context.CancelFunc
}

// New returns a server for the page of the elections on b. It does not block; it asks b only while
// a page is open. The caller closes the server, and b after that.
func New(b backend.Backend, o Options) *Server {
	s := newServer(o)
	s.root = s.add(Coordinator{URL: o.URL, Names: o.Names, Backend: b}).mux
	return s
}

func newServer(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, guard: newGuard(o), streams: quota{most: maxStreams}}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// handler returns what answers for a page, or for the overview: with the start of it, and with the events that it is told.
func (s *Server) handler(index, events http.HandlerFunc) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /events", events)
	mux.HandleFunc("GET /files/{name}", file)
	mux.HandleFunc("GET /healthz", healthz)
	mux.HandleFunc("POST /{$}", s.login)
	return mux
}

// Close ends all streams, and what the server asks of coordinators. It blocks until that has
// ended.
func (s *Server) Close() {
	s.end()
	var closing sync.WaitGroup
	for _, p := range s.pages {
		closing.Go(p.w.close)
	}
	closing.Wait()
}

// policy is what a browser may do with the page: run its scripts, and ask this server. Scripts cannot
// make markup of strings (require-trusted-types-for).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Whoever does not read must not keep a handler. A stream sets the bound anew with each event.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeBound))
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer the browser would not say its origin at a login
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	r, ok := below(s.o.BasePath, r)
	if !ok && r.URL.Path == "/healthz" { // whoever watches the server need not come by the proxy
		ok = true
	}
	mux, start := s.root, s.o.BasePath+"/"
	if p, in := s.pageOf(r); p != nil {
		r, mux, start = in, p.mux, p.name+"/" // from the path without the slash, whatever a proxy has taken from it
	}
	if !ok || r.URL.Path != "" && r.URL.Path != path.Clean(r.URL.Path) { // the latter would be led to the root, out of the base
		http.NotFound(w, r)
		return
	}
	if err := s.guard.meant(r); err != nil {
		refuse(w, http.StatusMisdirectedRequest, err)
		return
	}
	if err := s.guard.askedHere(r); err != nil {
		refuse(w, http.StatusForbidden, err)
		return
	}
	if r.Method == http.MethodHead && r.URL.Path == "/events" { // which would never end
		refuse(w, http.StatusMethodNotAllowed, errors.New("a stream has no head"))
		return
	}
	if r.URL.Path == "" {
		h.Set("Location", start)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	public := r.Method == http.MethodPost && r.URL.Path == "/" || r.URL.Path == "/healthz" || strings.HasPrefix(r.URL.Path, "/files/")
	if public {
		mux.ServeHTTP(w, r)
		return
	}
	v, err := s.guard.admits(r)
	if err != nil {
		s.refused(r, err)
		if looksOnly(r) && r.URL.Path == "/" {
			s.render(w, codeOfToken(err), "login.html", nil)
			return
		}
		h.Set("WWW-Authenticate", "Bearer")
		refuse(w, codeOfToken(err), err)
		return
	}
	mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, v)))
}

type visitorKey struct{}

// visitorOf returns who has asked, once the guard has admitted that.
func visitorOf(r *http.Request) visitor {
	v, _ := r.Context().Value(visitorKey{}).(visitor)
	return v
}

// below returns the request as if the page began at "/". Its path is empty if it is the base itself, which lacks the slash that
// the addresses in the page go on from. ok is false if it is somewhere else.
func below(base string, r *http.Request) (in *http.Request, ok bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, base)
	if !ok || base != "" && rest != "" && rest[0] != '/' {
		return r, false
	}
	u := *r.URL
	u.Path, u.RawPath = rest, "" // no path of the page needs to be escaped
	in = r.WithContext(r.Context())
	in.URL = &u
	return in, true
}

// refused tells the log if a wrong token was given. Those too many are not told.
func (s *Server) refused(r *http.Request, err error) {
	if errors.Is(err, errWrong) {
		s.o.Logger.Warn("a wrong token was given", "from", r.RemoteAddr, "path", r.URL.Path)
	}
}

// healthz says that this server serves. It says nothing of the coordinator, for which nobody should restart it.
func healthz(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }

// codeOfToken returns the status code for a token that is not taken.
func codeOfToken(err error) int {
	switch {
	case errors.Is(err, errSlowly):
		return http.StatusTooManyRequests
	case errors.Is(err, errUser):
		return http.StatusBadRequest
	}
	return http.StatusUnauthorized
}

// refuse answers with the reason, as text.
func refuse(w http.ResponseWriter, code int, why error) { http.Error(w, ui.OneLine(why.Error()), code) }

// render answers with a page.
func (s *Server) render(w http.ResponseWriter, code int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	if err := templates.ExecuteTemplate(w, name, data); err != nil {
		s.o.Logger.Debug("the page was not sent", "err", err)
	}
}

// types are those of the files, which must not depend on the machine: a browser runs no script of
// another type.
var types = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

func file(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	data, err := assets.ReadFile("assets/files/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	_, _ = w.Write(data)
}

// login gives whoever has the token a cookie, which lasts as long as the browser, or this server, runs. The form sends the token to
// the address that it was asked at, so that the browser comes back to what that has behind "#".
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	k, err := s.guard.try(r, r.PostFormValue("token"))
	if err != nil {
		s.refused(r, err)
		s.render(w, codeOfToken(err), "login.html", strings.ToUpper(err.Error()[:1])+err.Error()[1:]+".")
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: k.cookie, Path: s.o.BasePath + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.Header.Get("Origin") == "https://"+r.Host,
	})
	w.Header().Set("Location", "./") // which a proxy may serve below any path
	w.WriteHeader(http.StatusSeeOther)
}
