package uitest

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/succession-dev/succession"
	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	_ "github.com/succession-dev/succession/etcd"
	"github.com/succession-dev/succession/internal/calm"
	"github.com/succession-dev/succession/internal/rig/coordtest"
)

// While a real coordinator does not answer, the page says at once since when, and shows nothing as if it were
// so; and at once that it is back. It makes no difference whether the server stands still, with its connections, or has
// gone. The timeline ends at the last knowledge.
func TestOutage(t *testing.T) {
	server := coordtest.NewEtcd(t, nil)
	url := "etcd://" + server.Addrs()[0] + "/outage?ttl=60s"
	open := func() backend.Backend {
		b, err := succession.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	}
	s, err := open().Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mails", "reports"} {
		if _, err := s.Join(t.Context(), name, "web-1", ""); err != nil {
			t.Fatal(err)
		}
	}
	served := page.New(open(), page.Options{URL: url})
	h := httptest.NewServer(served)
	t.Cleanup(func() {
		served.Close()
		h.Close()
	})
	w := &world{T: t, url: h.URL}
	p := w.open("#/reports", 1280, 900)
	const (
		known   = `!document.body.classList.contains("old") && document.getElementById("health").textContent === "live"`
		unknown = `document.body.classList.contains("old") && document.getElementById("health").textContent.startsWith("not reached since ")`
		// One term is drawn, and not up to now.
		ended = `((ends) => ends.length === 1 && ends[0] <= document.getElementById("timeline").clientWidth - 4)(
			[...document.querySelectorAll("#timeline rect.term")].map((r) => Math.round(Number(r.getAttribute("x")) + Number(r.getAttribute("width")))))`
	)
	p.sees(text("count") + ` === "2 elections, all is well" && ` + text("who") + ` === "web-1" && ` + known)
	in := func(what string, do func(), condition string) {
		t.Helper()
		do() // a server is back when it answers, which may take it seconds
		watch := calm.Start(t)
		p.sees(condition)
		watch.Within(2*time.Second, "that %s is seen", what)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, outage := range []struct {
		name        string
		begin, over func()
	}{
		{"stands still", func() { must(server.Pause()) }, func() { must(server.Resume()) }},
		{"was killed", server.Kill, func() { must(server.Servers()[0].Restart(context.Background())) }},
	} {
		in("the server "+outage.name, outage.begin, unknown)
		p.sees(text("count") + ` === "2 elections, how they are is unknown"`)
		p.sees(text("trouble") + `.startsWith("The coordinator has not been heard from since ")`)
		p.sees(`document.title.startsWith("(?) ")`)
		if soft := says[bool](p, `new Set([...document.querySelectorAll(".mood"), document.querySelector(".soft")].map((e) => getComputedStyle(e).color)).size === 1`); !soft {
			t.Error("a state is shown as if it were known")
		}
		// In the picture of five minutes nothing is drawn up to now, after some seconds.
		time.Sleep(5 * time.Second)
		p.does(script(`document.getElementById("range").value = "300"; document.getElementById("range").dispatchEvent(new Event("change"))`))
		p.sees(ended)
		in("the server is back that "+outage.name, outage.over, known)
		p.sees(text("count") + ` === "2 elections, all is well" && document.getElementById("trouble").hidden && ` + text("who") + ` === "web-1"`)
	}

	// The same if the server of the page has gone.
	in("the server of the page was ended", func() { served.Close(); h.Close() }, `document.body.classList.contains("old")`)
	p.sees(text("count") + ` === "2 elections, how they are is unknown"`)
}
