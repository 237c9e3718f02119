package uitest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/memory"
)

// estateOf returns a world for each name, whose pages one server has, with an overview of them. Each world has the address of the server.
func estateOf(t *testing.T, o page.Options, coordinators ...page.Coordinator) map[string]*world {
	t.Helper()
	worlds := make(map[string]*world)
	for i, c := range coordinators {
		w := &world{T: t, c: memory.New(&memory.Options{TTL: time.Hour}), leaves: make(map[string]func())}
		b := w.c.Client("page")
		t.Cleanup(func() { b.Close() })
		coordinators[i].Backend = b
		worlds[c.Name] = w
	}
	s := page.NewOverview(coordinators, o)
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		h.Close()
	})
	for _, w := range worlds {
		w.url = h.URL
	}
	return worlds
}

// The overview follows each coordinator by itself, and leads to its page, which leads back. What is in trouble, and what is not heard
// from, comes first, and is in the title of the tab.
func TestOverview(t *testing.T) {
	of := estateOf(t, page.Options{Allow: []page.Act{page.Pause}},
		page.Coordinator{Name: "orders", URL: "etcd://h1:2379/app", Explain: func(context.Context) string { return "<b>nothing</b> listens there" }},
		page.Coordinator{Name: "payments", URL: "consul://h2:8500/<i>app</i>", Names: []string{"nightly"}})
	of["orders"].stands("reports", "web-1", "")
	of["payments"].stands("reports", "web-2", "")
	p := of["orders"].open("", 1280, 900)
	p.sees(`document.title === "(1) Elections" && ` + text("count") + ` === "2 coordinators; 3 elections, 1 in trouble" && ` + text("health") + ` === "live"`)
	names := `String(` + cells("Coordinators", 0) + `)`
	p.sees(names + ` === "payments,orders" && String(` + cells("Coordinators", 2) + `) === "2,1" && String(` + cells("Coordinators", 3) + `) === "1,0"`)
	p.sees(`String(` + cells("Coordinators", 1) + `) === "live,live" && String(` + cells("Coordinators", 4) + `) === "consul://h2:8500/<i>app</i>,etcd://h1:2379/app"`)
	p.does(script(`window.same = true`))
	of["orders"].c.Pause()
	p.sees(names + ` === "orders,payments" && document.title === "(1?) Elections" && String(` + cells("Coordinators", 3) + `) === "?,1"`)
	p.sees(cells("Coordinators", 1) + `[0].startsWith("not reached since ") && ` + text("trouble") + `.endsWith(": <b>nothing</b> listens there")`)
	p.sees(text("trouble") + `.startsWith("orders has not been heard from since ") && document.querySelector("#trouble[role=alert]").checkVisibility()`)
	of["payments"].stands("nightly", "web-3", "")
	p.sees(`document.title === "(?) Elections" && ` + text("count") + ` === "2 coordinators, of which 1 cannot be looked at; 3 elections"`)
	of["orders"].c.Resume()
	p.sees(`document.title === "Elections" && ` + names + ` === "orders,payments" && ` + text("count") + ` === "2 coordinators; 3 elections, none in trouble"`)
	if !says[bool](p, `window.same && document.querySelectorAll("b, i").length === 0`) {
		t.Error("the overview was loaded again, or has elements that were made of what others have written")
	}

	p.does(keys(kb.Tab), keys(kb.ArrowDown))
	if at := says[string](p, `document.activeElement.textContent`); at != "payments" {
		t.Fatalf("the keyboard comes to %q", at)
	}
	p.loads(keys(kb.Enter))
	p.sees(`location.pathname === "/payments/" && document.title === "payments" && String(` + cells("Elections", 1) + `) === "web-3,web-2"`)
	p.does(chromedp.Click(chromedp.CSS(`[aria-label="Elections"] a[href="#/reports"]`)))
	p.sees(`document.title === "reports – payments" && ` + text("who") + ` === "web-2"`)
	p.does(script(`document.getElementById("pause").click()`), chromedp.SendKeys(chromedp.CSS("#why"), "a new disk\r"))
	p.sees(text("done") + ` === "reports was paused."`)
	b := of["orders"].client("reader")
	if l, err := elect.New(b, "reports", nil).Leader(context.Background()); err != nil || l.ID != "web-1" {
		t.Errorf("the leader of the other coordinator's election is %v, %v", l, err)
	}
	p.loads(chromedp.Click(chromedp.CSS(`.top a`)))
	p.sees(`location.pathname === "/" && ` + names + ` === "orders,payments"`)
	p.sees(text("count") + ` === "2 coordinators; 3 elections, none in trouble"`) // which does not say that all is well: one is paused
}

// unread is a coordinator that is heard from, and does not tell which elections there are.
type unread struct{ backend.Backend }

func (u unread) Session(ctx context.Context) (backend.Session, error) {
	s, err := u.Backend.Session(ctx)
	return unreadSession{s}, err
}

type unreadSession struct{ backend.Session }

func (unreadSession) Survey(ctx context.Context) (map[string]backend.Standing, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Of a coordinator that was not read yet nothing looks well.
func TestOverviewOfOneThatIsBeingRead(t *testing.T) {
	b := unread{memory.New(nil).Client("page")}
	t.Cleanup(func() { b.Close() })
	s := page.NewOverview([]page.Coordinator{{Name: "orders", Backend: b}}, page.Options{})
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		h.Close()
	})
	p := (&world{T: t, url: h.URL}).open("", 1280, 900)
	p.sees(`String(` + cells("Coordinators", 1) + `) === "being read" && document.title === "(?) Elections"`)
	if good := says[int](p, `document.querySelectorAll("td .good").length`); good > 0 {
		t.Errorf("%d cells look well", good)
	}
	p.sees(cells("Coordinators", 1) + `[0].startsWith("not known since ") && document.title === "(?) Elections"`)
}

// Behind a proxy that takes a path away, one login is for all, and each link leads to where it should.
func TestOverviewBehindProxy(t *testing.T) {
	const token, path = "a-token-that-is-long", "/tools/elections"
	of := estateOf(t, page.Options{Token: token}, page.Coordinator{Name: "orders"}, page.Coordinator{Name: "payments"})
	of["payments"].stands("reports", "web-1", "")
	at, err := url.Parse(of["payments"].url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = at.Scheme, at.Host
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, path)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(proxy.Close)
	w := of["payments"]
	w.url = proxy.URL + path
	p := w.open("payments/#/reports", 1280, 900)
	p.loads(chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
	p.sees(`location.pathname === "` + path + `/payments/" && ` + text("who") + ` === "web-1"`)
	p.loads(chromedp.Click(chromedp.CSS(`.top a`)))
	p.sees(`location.pathname === "` + path + `/" && String(` + cells("Coordinators", 0) + `) === "orders,payments"`)
	p.loads(chromedp.Click(chromedp.CSS(`[aria-label="Coordinators"] a[href="orders/"]`)))
	p.sees(`location.pathname === "` + path + `/orders/" && document.title === "orders"`)
	p = w.open("payments", 1280, 900)
	p.sees(`location.pathname === "` + path + `/payments/" && String(` + cells("Elections", 0) + `) === "reports"`)
}

// If the server of the overview has gone, nothing is shown as if it were known.
func TestOverviewWithoutServer(t *testing.T) {
	b := memory.New(nil).Client("page")
	t.Cleanup(func() { b.Close() })
	s := page.NewOverview([]page.Coordinator{{Name: "orders", Backend: b}}, page.Options{})
	h := httptest.NewServer(s)
	p := (&world{T: t, url: h.URL}).open("", 1280, 900)
	p.sees(text("count") + ` === "1 coordinator; 0 elections, none in trouble"`)
	s.Close()
	h.Close()
	p.sees(`document.body.classList.contains("old") && document.title === "(?) Elections" && ` + text("count") + ` === "1 coordinator, how they are is unknown"`)
	p.sees(text("health") + `.startsWith("this page's server not reached since ")`)
}

// several fills coordinators as an operator may see them at night.
func several(t *testing.T) (of map[string]*world) {
	of = estateOf(t, page.Options{},
		page.Coordinator{Name: "orders", URL: "etcd://h1:2379,h2:2379,h3:2379/app"},
		page.Coordinator{Name: "payments", URL: "consul://h4:8500/app"},
		page.Coordinator{Name: "reports", URL: "zookeeper://zk1:2181,zk2:2181,zk3:2181/app", Names: []string{"monthly"}},
		page.Coordinator{Name: "warehouse", URL: "postgres://db1/app", Explain: func(context.Context) string {
			return "nothing listens on port 5432 of db1; is PostgreSQL up, and the port right?"
		}})
	for i, name := range []string{"invoices", "mails", "prices", "thumbnails"} {
		of["orders"].stands(name, fmt.Sprintf("web-%d", i), "")
		of["payments"].stands(name, fmt.Sprintf("node-%d", i), "")
	}
	of["reports"].stands("daily", "node-9", "")
	of["warehouse"].c.Pause()
	t.Cleanup(of["warehouse"].c.Resume)
	return of
}

const night = `document.title === "(1?) Elections" && document.getElementById("trouble").textContent.includes("nothing listens")`

// The overview can be read in both themes, on wide screens and on narrow ones, and so can the head of a page.
func TestOverviewLooks(t *testing.T) {
	of := several(t)
	for _, looks := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 400} {
			t.Run(fmt.Sprintf("%s %d", looks, width), func(t *testing.T) {
				p := (&world{T: t, url: of["orders"].url}).open("", width, 900, theme(looks))
				check := func(what string) {
					t.Helper()
					p.does(script(contrast))
					if over := says[int](p, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
						t.Errorf("%s: the page is %d pixels too wide", what, over)
					}
					if faint := says[[]string](p, `faint()`); len(faint) > 0 {
						t.Errorf("%s: hard to read: %q", what, faint)
					}
					if same := says[[]string](p, sameRegions); len(same) > 0 {
						t.Errorf("%s: several regions are called %q", what, same)
					}
				}
				p.sees(night)
				check("the overview")
				// Which coordinator it is, and since when it is not reached, is read without opening it.
				if cut := says[[]string](p, `[...document.querySelectorAll('td:first-child a')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)`); len(cut) > 0 {
					t.Errorf("the overview shows only the beginnings of %q", cut)
				}
				p.loads(chromedp.Click(chromedp.CSS(`a[href="reports/"]`)))
				p.sees(text("count") + ` === "2 elections, 1 in trouble"`)
				check("the page")
			})
		}
	}
}
