package uitest

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
)

// Behind a proxy all of the page works at a path of its own, whether the proxy passes that on or takes it away. What is done there is
// done in the name that the proxy says. Who comes past it needs the token, and can only look.
func TestBehindProxy(t *testing.T) {
	const token, path = "a-token-that-is-long", "/tools/elections"
	for _, tt := range []struct{ name, base string }{{"passes the path on", path}, {"takes the path away", ""}} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, page.Options{BasePath: tt.base, Token: token, UserHeader: "X-Remote-User", By: "ops@web-1", Allow: []page.Act{page.Pause}})
			w.stands("reports", "web-1", "")
			at, err := url.Parse(w.url)
			if err != nil {
				t.Fatal(err)
			}
			proxy := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host = at.Scheme, at.Host
				if tt.base == "" {
					r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, path)
				}
				r.Out.Host = r.In.Host
				r.Out.Header.Set("Authorization", "Bearer "+token)
				r.Out.Header.Set("X-Remote-User", "cora@example.com")
			}})
			t.Cleanup(proxy.Close)
			past := w.url
			w.url = proxy.URL + path
			p := w.open("#/reports", 1280, 900)
			p.sees(text("who") + ` === "web-1" && document.getElementById("pause").checkVisibility() && document.querySelector(".top").textContent.includes("cora@example.com")`)
			p.does(script(`document.getElementById("pause").click()`), chromedp.SendKeys(chromedp.CSS("#why"), "a new disk\r"))
			p.sees(text("done") + ` === "reports was paused." && ` + text("facts") + `.includes("cora@example.com, on the page of ops@web-1")`)
			if picture := says[string](p, `document.getElementById("picture").href`); picture != w.url+"/timeline.svg?name=reports" {
				t.Errorf("the picture is at %s", picture)
			}

			w.url = past + tt.base
			p = w.open("#/reports", 1280, 900)
			p.loads(chromedp.SendKeys(chromedp.CSS("#token"), token+"\r"))
			p.sees(text("state") + ` === "paused"`)
			if says[bool](p, `document.getElementById("acts").checkVisibility()`) {
				t.Error("who comes past the proxy, and has no name, is offered to act")
			}
			if at := says[string](p, `location.pathname`); at != tt.base+"/" {
				t.Errorf("the login leads to %s", at)
			}
		})
	}
}

// An id with characters that change the order of letters, or show nothing, is seen to have them.
func TestHiddenCharacters(t *testing.T) {
	w := newWorld(t, page.Options{})
	w.stands("reports", "web-\u202e2\u200b1", "")
	p := w.open("#/reports", 1280, 900)
	const want = `"web-\\u202e2\\u200b1"`
	p.sees(text("who") + " === " + want + " && String(" + cells("Elections", 1) + ") === " + want + " && String(" + cells("Terms", 1) + ") === " + want)
}
