package page

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// A Coordinator is one that a [Server] has a page for.
type Coordinator struct {
	// Name is what people call it, and its path; see [CheckName]. It is empty if there is only one.
	Name string
	// URL is the coordinator as its page shows it. It must hold no secret.
	URL string
	// Names are elections that are shown although nobody stands in their lines.
	Names   []string
	Backend backend.Backend
	// Explain says why the coordinator is not heard from, or "". It may block, and is called again and again in an outage. Nil says nothing.
	Explain func(context.Context) string
}

// A page is that of one coordinator. What the coordinator is asked has bounds on each page: one that does not answer must not hold
// up what is done on the pages of others.
type page struct {
	*Server
	name     string
	url      string
	w        *watcher
	mux      *http.ServeMux
	pictures quota
	acts     quota
}

// add adds the page of a coordinator.
func (s *Server) add(c Coordinator) *page {
	log := s.o.Logger
	if c.Name != "" {
		log = log.With("coordinator", c.Name)
	}
	p := &page{
		Server: s, name: c.Name, url: c.URL, w: newWatcher(c.Backend, c.Names, log),
		pictures: quota{most: maxPictures}, acts: quota{most: maxActs},
	}
	p.w.bell.also, p.w.explain = &s.bell, c.Explain
	p.mux = s.handler(p.index, p.events)
	p.mux.HandleFunc("GET /timeline.svg", p.timeline)
	for name, d := range p.deeds() {
		p.mux.HandleFunc("POST /"+name, p.act(name, d))
	}
	s.pages = append(s.pages, p)
	return p
}

func (p *page) index(w http.ResponseWriter, r *http.Request) {
	if p.streams.full() { // the page could show nothing, and could not say why
		refuse(w, http.StatusServiceUnavailable, errManyStreams)
		return
	}
	var allowed []string
	for _, a := range p.o.Allow {
		if p.may(r, a) == nil {
			allowed = append(allowed, string(a))
		}
	}
	p.render(w, http.StatusOK, "index.html", struct{ Name, URL, Allow, User string }{p.name, p.url, strings.Join(allowed, " "), visitorOf(r).user})
}

// timeline answers with the picture of an election's terms, as the conformance suite draws it.
func (p *page) timeline(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if err := backend.CheckName(name); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if !p.pictures.take() {
		refuse(w, http.StatusServiceUnavailable, errManyPictures)
		return
	}
	defer p.pictures.give()
	if err := p.awaitListed(r.Context(), name); err != nil {
		refuse(w, codeOfList(err), err)
		return
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox") // the picture has a style of its own
	w.Header().Set("Content-Type", "image/svg+xml")
	a, err := within(r.Context(), func(ctx context.Context) (account, error) { return p.w.account(ctx, name) })
	if err != nil {
		a = p.w.past.account(name) // without what cannot be read now
	}
	lost, _ := p.w.pulse.lost()
	if err := a.history(name, millis(lost)).SVG(w, name, nil); err != nil {
		p.w.log.Debug("the picture was not sent", "err", err)
	}
}

// codeOfList returns the status code for what awaitListed fails with.
func codeOfList(err error) int {
	if errors.Is(err, errUnlisted) {
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable
}

// awaitListed fails if there is nothing at the line in the list, which it waits for.
func (p *page) awaitListed(ctx context.Context, line string) error {
	defer p.w.looks.need()()
	_, err := within(ctx, func(ctx context.Context) (struct{}, error) {
		for {
			changed := p.w.bell.next()
			listed, ready := p.w.lists(line)
			switch {
			case listed:
				return struct{}{}, nil
			case ready:
				return struct{}{}, errUnlisted
			}
			if err := p.pause(ctx, changed, alive); err != nil {
				return struct{}{}, err
			}
		}
	})
	return err
}
