package uitest

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/memory"
)

// hides is a step: the tab is not in sight any more, or it is again.
func hides(hidden bool) step {
	return script(fmt.Sprintf(`Object.defineProperty(document, "hidden", { configurable: true, get: () => %v }); document.dispatchEvent(new Event("visibilitychange"))`, hidden))
}

// observes has somebody else look at an election until the test ends, or until leave is called. It returns when that is shown.
func (w *world) observes(name string) (leave func()) {
	w.Helper()
	ctx, leave := context.WithCancel(context.Background())
	w.Cleanup(leave)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/events?show="+name, nil)
	if err != nil {
		w.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { answer.Body.Close() })
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if lines.Text() == "event: detail" {
			return leave
		}
	}
	w.Fatalf("%s is not shown", name)
	return nil
}

// A page that was not in sight, and whose election the server does not observe any more, shows nothing of what was, and why.
func TestHintInPlaceOfADetail(t *testing.T) {
	w := newWorld(t, page.Options{})
	w.stands("reports", "web-1", "")
	p := w.open("#/reports", 1280, 900)
	p.sees(text("who") + ` === "web-1" && document.getElementById("chosen").checkVisibility()`)
	p.does(hides(true))
	for i := range 16 {
		w.stands(fmt.Sprint("job-", i), fmt.Sprint("job-", i), "")
	}
	var leave func()
	for i := range 16 {
		leave = w.observes(fmt.Sprint("job-", i))
	}
	p.does(hides(false))
	p.sees(text("hint") + `.startsWith("reports: 16 elections are observed already") && document.getElementById("hint").checkVisibility()`)
	if says[bool](p, `document.getElementById("chosen").checkVisibility()`) {
		t.Error("what was is shown all the same")
	}
	leave()
	p.sees(text("who") + ` === "web-1" && document.getElementById("chosen").checkVisibility()`)
}

// A page that is in sight again, whose server has gone meanwhile, says since when it knows nothing: since before it was out of sight.
func TestServerGoneOutOfSight(t *testing.T) {
	b := memory.New(nil).Client("page")
	t.Cleanup(func() { b.Close() })
	s := page.New(b, page.Options{Names: []string{"reports"}})
	h := httptest.NewServer(s)
	p := (&world{T: t, url: h.URL}).open("", 1280, 900)
	p.sees(text("count") + ` === "1 election, 1 in trouble"`)
	p.does(hides(true))
	s.Close()
	h.Close()
	p.does(script(`Date.now = ((now) => () => now() + 3 * 86400e3)(Date.now)`)) // three days go by
	p.does(hides(false))
	const gone = "this page's server not reached since "
	p.sees(text("health") + `.startsWith("` + gone + `")`)
	since := says[string](p, text("health"))
	if now := says[string](p, `new Date(Date.now()).toLocaleDateString()`); strings.HasPrefix(since, gone+now) {
		t.Errorf("three days later the page says: %s", since)
	}
	p.does(hides(true))
	p.sees(text("health") + ` === "paused"`)
	p.does(hides(false))
	p.sees(text("health") + ` === "` + since + `"`)
}

// A page that is opened out of sight asks for nothing before it is seen.
func TestOpenedOutOfSight(t *testing.T) {
	w := newWorld(t, page.Options{})
	w.stands("reports", "web-1", "")
	p := w.open("#/reports", 1280, 900, onEachPage(`
		Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
		asked = 0;
		EventSource = class extends EventSource { constructor(...a) { super(...a); asked++; } };`))
	if n := says[int](p, `asked`); n != 0 {
		t.Errorf("it has asked for %d streams", n)
	}
	p.does(hides(false))
	p.sees(text("who") + ` === "web-1" && ` + text("health") + ` === "live"`)
}

// Of elections that were not read yet, or cannot be read although the coordinator is heard from, nothing looks well.
func TestUnread(t *testing.T) {
	w := newWorld(t, page.Options{})
	w = worldOf(t, w.c, unread{w.c.Client("page")}, page.Options{Names: []string{"reports"}})
	w.stands("reports", "web-1", "")
	p := w.open("", 1280, 900)
	const nothing = `document.body.classList.contains("old") && document.title === "(?) Elections" && !document.querySelector(".good")`
	p.sees(text("count") + ` === "being read" && ` + text("health") + ` === "being read" && ` + nothing)
	p.sees(text("health") + `.startsWith("not known since ") && ` + text("trouble") + `.startsWith("Nothing newer is known since ") && ` + nothing)
	p.sees(text("count") + `.endsWith(", how they are is unknown")`)
}
