package uitest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/backend/kit"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/internal/view"
	"github.com/succession-dev/succession/memory"
)

// A new leader is shown everywhere on the page, which is not loaded again.
func TestChanges(t *testing.T) {
	w := newWorld(t, page.Options{})
	w.stands("reports", "web-1", "")
	w.stands("reports", "web-2", "http://web-2:8080")
	p := w.open("#/reports", 1280, 900)
	p.sees(text("who") + ` === "web-1" && ` + text("state") + ` === "at work" && ` + text("health") + ` === "live"`)
	p.does(script(`window.same = true`))
	w.leaves["web-1"]()
	p.sees(text("who") + ` === "web-2" && ` + text("facts") + `.includes("http://web-2:8080")`)
	p.sees(`String(` + cells("Elections", 1) + `) === "web-2"`)
	p.sees(`String(` + cells("Line", 1) + `) === "web-2"`)
	p.sees(`String(` + cells("Terms", 1) + `) === "web-2,web-1"`)
	p.sees(`document.querySelectorAll("#timeline rect.term").length === 2`)
	p.sees(text("say") + `.startsWith("web-2 leads reports, token ")`)
	if !says[bool](p, `window.same === true`) {
		t.Error("the page was loaded again")
	}
	w.leaves["web-2"]()
	p.sees(text("who") + ` === "nobody" && ` + text("state") + ` === "nobody leads"`)
	p.sees(`document.querySelectorAll("#timeline rect.vacancy").length > 0`)
}

// What a candidate wrote is text, whatever it looks like.
func TestMarkupIsText(t *testing.T) {
	w := newWorld(t, page.Options{})
	const id = `<script>window.hit = true</script><img src=x onerror="window.hit = true">`
	const value = `"><b onclick=alert(1)>bold</b>`
	w.stands("reports", id, value)
	p := w.open("#/reports", 1280, 900)
	p.sees(fmt.Sprintf(`%s === %q && %s.includes(%q)`, text("who"), id, text("facts"), value))
	p.sees(fmt.Sprintf(`%s[0] === %q && %s[0] === %q`, cells("Elections", 1), id, cells("Terms", 1), id))
	p.sees(`document.querySelector("#timeline title") !== null`)
	if n := says[int](p, `document.querySelectorAll("img, b, script:not([src])").length`); n != 0 {
		t.Errorf("%d elements were made of what a candidate wrote", n)
	}
	if says[bool](p, `window.hit === true`) {
		t.Error("what a candidate wrote was run")
	}
	// If a script of the page set markup all the same, the browser would refuse.
	if !says[bool](p, `(() => { try { document.body.innerHTML = "<b>x</b>"; return false; } catch (e) { return e instanceof TypeError; } })()`) {
		t.Error("markup can be made of strings")
	}
}

// All can be done with the keyboard alone, and the focus is seen.
func TestKeyboard(t *testing.T) {
	w := newWorld(t, page.Options{Allow: []page.Act{page.Resign}})
	for i := range 40 {
		w.stands(fmt.Sprintf("job-%02d", i), fmt.Sprintf("web-%d", i), "")
	}
	w.stands("job-02", "next", "")
	p := w.open("", 1280, 900)
	p.sees(text("count") + ` === "40 elections, all is well"`)
	focus := `(document.activeElement.id || document.activeElement.textContent.trim())`
	tabs := func(want ...string) {
		t.Helper()
		for _, w := range want {
			p.does(keys(kb.Tab))
			if got := says[string](p, focus); got != w {
				t.Fatalf("Tab leads to %q; want %q", got, w)
			}
			if says[string](p, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
				t.Errorf("that the keyboard is at %s is not seen", w)
			}
		}
	}
	tabs("Skip to the chosen election", "find", "attention", "Name", "Leader", "State", "Since", "In line", "job-00")
	for _, move := range []struct{ key, to string }{{kb.ArrowDown, "job-01"}, {kb.ArrowDown, "job-02"}, {kb.End, "job-39"}, {kb.Home, "job-00"}, {kb.PageDown, ""}, {kb.Home, "job-00"}, {kb.ArrowDown, "job-01"}, {kb.ArrowDown, "job-02"}} {
		p.does(keys(move.key))
		if got := says[string](p, focus); move.to != "" && got != move.to || got == "" {
			t.Fatalf("%q leads to %q; want %q", move.key, got, move.to)
		}
	}
	p.does(keys(kb.Enter))
	p.sees(text("name") + ` === "job-02" && ` + text("who") + ` === "web-2"`)
	p.sees(`document.querySelector("[aria-current=true]").textContent === "job-02"`)
	tabs("resign")
	p.does(keys(kb.Enter))
	p.sees(`document.getElementById("ask").open`)
	p.does(keys(kb.Escape))
	p.sees(`!document.getElementById("ask").open && document.activeElement.id === "resign"`)
	p.does(keys(kb.Enter))
	p.sees(`document.getElementById("ask").open && document.activeElement.id === "why"`)
	p.does(keys("a new disk" + kb.Enter))
	p.sees(text("done") + ` === "web-2 was asked to resign."`)
	p.sees(text("who") + ` === "next"`)

	p.does(chromedp.Focus(chromedp.CSS("#find")), keys("job-3"))
	p.sees(text("count") + `.startsWith("10 of 40 elections")`)
	p.does(keys(kb.ArrowDown))
	if got := says[string](p, focus); got != "job-30" {
		t.Errorf("from the search the arrow leads to %q", got)
	}
}

// Nothing is done by a page that may only be looked at.
func TestOnlyToLookAt(t *testing.T) {
	w := newWorld(t, page.Options{})
	w.stands("reports", "web-1", "")
	w.stands("reports", "web-2", "")
	p := w.open("#/reports", 1280, 900)
	p.sees(text("who") + ` === "web-1" && String(` + cells("Line", 1) + `) === "web-1,web-2"`)
	if n := says[int](p, `[...document.querySelectorAll(".detail button")].filter((b) => b.checkVisibility()).length`); n != 0 {
		t.Errorf("the page has %d buttons for what is not allowed", n)
	}
	p.does(script(`Promise.all(["resign", "pause", "resume"].map((path) => fetch("/" + path, {
		method: "POST", headers: { "Content-Type": "application/json", "Succession-Page": "1" },
		body: JSON.stringify({ name: "reports", token: "1", reason: "moved" }),
	}))).then((all) => { document.title = String(all.map((r) => r.status)); })`))
	p.sees(`document.title === "403,403,403"`)
	b := w.c.Client("observer")
	defer b.Close()
	if l, err := elect.New(b, "reports", nil).Leader(context.Background()); err != nil || l.ID != "web-1" {
		t.Errorf("the leader is %v, %v", l, err)
	}
}

// Where the backend has no pins, a pause is not offered.
func TestNoPins(t *testing.T) {
	c := memory.New(&memory.Options{TTL: time.Hour})
	b := view.Of(c.Client("page"), func(s backend.Session) backend.Session { return pinless{s} })
	w := worldOf(t, c, b, page.Options{Names: []string{"reports"}, Allow: []page.Act{page.Resign, page.Pause}})
	w.stands("reports", "web-1", "")
	p := w.open("#/reports", 1280, 900)
	p.sees(text("who") + ` === "web-1" && document.getElementById("resign").checkVisibility()`)
	if says[bool](p, `document.getElementById("pause").checkVisibility()`) {
		t.Error("a pause is offered, and cannot be had")
	}
}

type pinless struct{ backend.Session }

func (pinless) Pin(ctx context.Context, m backend.Member, h backend.Header, at backend.Version) error {
	return kit.NoPins{}.Pin(ctx, m, h, at)
}

// An election is paused and resumed with the keyboard alone. The page says who has paused it, and why.
func TestPause(t *testing.T) {
	w := newWorld(t, page.Options{Allow: []page.Act{page.Resign, page.Pause}, By: "<i>anna</i>@ops-1"})
	w.stands("reports", "web-1", "")
	w.stands("reports", "web-2", "")
	p := w.open("#/reports", 1280, 900)
	p.sees(text("who") + ` === "web-1" && document.getElementById("pause").checkVisibility()`)
	const why = "<img src=x onerror=trouble.push(1)>"
	p.does(chromedp.Focus(chromedp.CSS("#resign")), keys(kb.Tab), keys(kb.Enter))
	p.sees(`document.getElementById("ask").open && document.activeElement.id === "why"`)
	p.does(keys(kb.Enter)) // without a reason nothing is done
	p.sees(`document.getElementById("ask").open && document.activeElement.id === "why"`)
	p.does(keys(kb.Escape))
	p.sees(`!document.getElementById("ask").open && document.activeElement.id === "pause"`)
	p.does(keys(kb.Enter), keys(why+kb.Enter))
	p.sees(fmt.Sprintf(`%s === "reports was paused." && %s === "paused" && %s === "nobody"`, text("done"), text("state"), text("who")))
	p.sees(fmt.Sprintf(`%s.includes("<i>anna</i>@ops-1") && %s.includes(%q)`, text("facts"), text("facts"), why))
	p.sees(fmt.Sprintf(`String(%s) === %q`, cells("Elections", 3), "paused by the page of <i>anna</i>@ops-1: "+why))
	p.sees(fmt.Sprintf(`String(%s) === %q`, cells("Line", 3), "paused: "+why+",waits"))
	p.sees(text("say") + ` === "reports is paused"`)
	if n := says[int](p, `[...document.querySelectorAll("img, i, #resign:not([hidden]), #pause:not([hidden]), td button:not([hidden])")].length`); n != 0 {
		t.Errorf("%d buttons make no sense while paused, or elements were made of what somebody wrote", n)
	}
	p.sees(`document.activeElement.id === "resume"`)
	p.does(keys(kb.Enter))
	p.sees(`document.getElementById("ask").open && document.activeElement.textContent === "Cancel"`)
	p.does(keys(kb.Tab), keys(kb.Enter))
	p.sees(text("done") + ` === "reports was resumed." && ` + text("who") + ` === "web-2"`)
	p.sees(`document.activeElement.id === "resign"`)
}

// The line shows priorities, sites, and who is not ready and why. The leader hands over to the one whose button
// is pressed, here with the keyboard alone.
func TestHandOver(t *testing.T) {
	w := newWorld(t, page.Options{Allow: []page.Act{page.Resign}})
	w.joins("reports", elect.Options{ID: "web-1", Site: "fra"})
	w.joins("reports", elect.Options{ID: "web-2", Priority: -3})
	w.joins("reports", elect.Options{ID: "<u>web-4</u>", Priority: -5})
	w.joins("reports", elect.Options{ID: "web-3", Ready: func(context.Context) error { return errors.New("<b>cold</b>") }})
	w.joins("reports", elect.Options{ID: "web-5"})
	p := w.open("#/reports", 1280, 900)
	p.sees(fmt.Sprintf(`String(%s) === "0,-3,-5,0,0" && String(%s) === "fra,,,,"`, cells("Line", 3), cells("Line", 4)))
	p.sees(fmt.Sprintf(`String(%s) === "at work,waits,waits,not ready: <b>cold</b>,waits"`, cells("Line", 5)))
	p.sees(`[...document.querySelectorAll(".note")].some((n) => n.textContent === "Not ready: web-3: <b>cold</b>")`)
	p.does(script(`document.querySelector('[aria-label="Line"]').focus()`), keys(kb.Tab))
	for _, move := range []struct{ key, to string }{{"", "web-2"}, {kb.ArrowDown, "<u>web-4</u>"}, {kb.End, "web-5"}, {kb.ArrowUp, "<u>web-4</u>"}} {
		if move.key != "" {
			p.does(keys(move.key))
		}
		if got := says[string](p, `document.activeElement.getAttribute("aria-label")`); got != "Hand over to "+move.to {
			t.Fatalf("%q leads to %q; want %s", move.key, got, move.to)
		}
	}
	p.does(keys(kb.Enter))
	p.sees(`document.getElementById("ask").open && ` + text("ask-title") + ` === "Hand over to <u>web-4</u>?"`)
	p.does(keys("a new disk" + kb.Enter))
	p.sees(text("done") + ` === "web-1 was asked to hand over to <u>web-4</u>."`)
	p.sees(text("who") + ` === "<u>web-4</u>"`)
	if n := says[int](p, `document.querySelectorAll("b, u").length`); n != 0 {
		t.Errorf("%d elements were made of what a candidate wrote", n)
	}
}

// Terms from before the page was open are shown where leaders have written them down.
func TestHistory(t *testing.T) {
	w := newWorld(t, page.Options{})
	w.joins("reports", elect.Options{ID: "<b>web-1</b>", History: 10})
	b := w.client("reader")
	for op := operate.New(b, "reports", ""); ; { // the beginning is written
		if terms, err := op.History(t.Context()); err != nil {
			t.Fatal(err)
		} else if len(terms) == 1 {
			break
		}
		s, err := b.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Watch(t.Context(), "reports.history", backend.Absent); err != nil {
			t.Fatal(err)
		}
	}
	w.leaves["<b>web-1</b>"]()
	w.joins("reports", elect.Options{ID: "web-2"})
	p := w.open("#/reports", 1280, 900)
	p.sees(fmt.Sprintf(`String(%s) === "web-2,<b>web-1</b>" && %s[1] === "resigned"`, cells("Terms", 1), cells("Terms", 4)))
	p.sees(`document.querySelectorAll("#timeline rect.told").length === 1 && document.querySelectorAll("#timeline line.since").length === 1`)
	p.sees(text("known") + `.includes("as their leaders wrote them down")`)
	if n := says[int](p, `document.querySelectorAll("b").length`); n != 0 {
		t.Errorf("%d elements were made of what a leader wrote", n)
	}
}

// With a token the page asks for it once.
func TestLogin(t *testing.T) {
	w := newWorld(t, page.Options{Token: "a-token-that-is-long"})
	w.stands("reports", "web-1", "")
	p := w.open("", 1280, 900)
	p.loads(chromedp.SendKeys(chromedp.CSS("#token"), "wrong"+kb.Enter))
	p.sees(`document.querySelector("[role=alert]")?.textContent === "That is not the token."`)
	p.loads(chromedp.SendKeys(chromedp.CSS("#token"), "a-token-that-is-long"+kb.Enter))
	p.sees(`String(` + cells("Elections", 0) + `) === "reports"`)
}

// Of a thousand elections, and of a line of a thousand, the page makes only the rows in sight.
func TestThousand(t *testing.T) {
	w := newWorld(t, page.Options{})
	b := w.c.Client("members")
	defer b.Close()
	s, err := b.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 999 {
		if _, err := s.Join(t.Context(), fmt.Sprintf("jobs/%03d", i), "web", ""); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		if _, err := s.Join(t.Context(), "long", fmt.Sprintf("web-%03d", i), ""); err != nil {
			t.Fatal(err)
		}
	}
	p := w.open("#/long", 1280, 900)
	p.sees(text("count") + ` === "1000 elections, all is well"`)
	p.sees(`document.querySelector('[aria-label="Line"] table')?.getAttribute("aria-rowcount") === "1001"`)
	if n := says[int](p, `document.querySelector('[aria-label="Elections"] table').getAttribute("aria-rowcount") - 0`); n != 1001 {
		t.Errorf("the list has %d rows", n)
	}
	few := func(when string) {
		t.Helper()
		// What is in sight is known only when the browser has laid the lists out: until then fewer rows are made.
		p.sees(`document.querySelectorAll("tbody tr").length >= 20`)
		rows := says[int](p, `document.querySelectorAll("tbody tr").length`)
		all := says[int](p, `document.querySelectorAll("*").length`)
		if rows > 150 || all > 2000 {
			t.Errorf("%s the page has %d rows and %d elements", when, rows, all)
		}
	}
	few("at first")
	for _, list := range []struct{ label, last string }{{"Elections", "long"}, {"Line", "web-999"}} {
		for _, part := range []float64{0.25, 0.5, 0.75, 1} {
			p.does(script(fmt.Sprintf(`{ const e = document.querySelector('[aria-label=%q]'); e.scrollTop = %g * e.scrollHeight; }`, list.label, part)))
			// The row at the middle of the sight is made.
			p.sees(fmt.Sprintf(`(() => { const r = document.querySelector('[aria-label=%q]').getBoundingClientRect();
				return document.elementFromPoint(r.x + 40, Math.min(r.bottom, innerHeight) - 60)?.closest("tr") !== null; })()`, list.label))
			few("in the midst of " + list.label)
		}
		p.sees(fmt.Sprintf(`[...document.querySelectorAll('[aria-label=%q] tbody tr')].some((r) => r.textContent.includes(%q))`, list.label, list.last))
	}
	l, err := s.Line(t.Context(), "long")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Leave(t.Context(), l.Members[500]); err != nil {
		t.Fatal(err)
	}
	p.sees(`document.querySelector('[aria-label="Line"] table').getAttribute("aria-rowcount") === "1000"`)
	few("after an exit")
}

// Both themes have enough contrast, and nothing is cut off, on wide screens and on narrow ones.
func TestLooks(t *testing.T) {
	w := newWorld(t, page.Options{Allow: []page.Act{page.Resign, page.Pause}})
	gallery(w)
	for _, looks := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 400} {
			t.Run(fmt.Sprintf("%s %d", looks, width), func(t *testing.T) {
				p := (&world{T: t, url: w.url}).open("", width, 900, theme(looks))
				p.sees(text("count") + `.includes("elections, ")`)
				p.does(script(contrast))
				check := func(what string) {
					t.Helper()
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
				check("the list")
				// Which election it is, and since when, is read without opening it.
				if cut := says[[]string](p, `[...document.querySelectorAll('[aria-label="Elections"] td:first-child a, [aria-label="Elections"] td:nth-child(5)')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent)`); len(cut) > 0 {
					t.Errorf("the list shows only the beginnings of %q", cut)
				}
				if dark := says[bool](p, `luminance(parse(getComputedStyle(document.body).backgroundColor)) < 0.2`); dark != (looks == "dark") {
					t.Errorf("the page is dark: %v", dark)
				}
				for _, line := range []string{"mails-items", "collectors-members", "stock/prices", "billing/invoices"} {
					p.does(script(fmt.Sprintf(`location.hash = "#/%s"`, line)))
					name, _, _ := strings.Cut(line, "-")
					p.sees(fmt.Sprintf(`%s === %q && document.querySelectorAll("#tables tbody tr").length > 0`, text("name"), name))
					check(line)
				}
				p.does(script(`document.getElementById("pause").click()`))
				check("the question")
			})
		}
	}
}

// sameRegions is an expression: the names that several regions have, which who hears the page cannot tell apart then.
const sameRegions = `[...document.querySelectorAll("section[aria-labelledby], [role=region]")].filter((e) => e.checkVisibility())
	.map((e) => e.getAttribute("aria-label") || document.getElementById(e.getAttribute("aria-labelledby")).textContent)
	.filter((name, i, all) => all.indexOf(name) < i)`

// contrast has functions that find text with a contrast below 4.5, as WCAG 2.2 computes it (1.4.3).
const contrast = `
function parse(c) { return c.match(/[\d.]+/g).map(Number); }
function luminance(c) {
	const [r, g, b] = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(e) {
	for (; e; e = e.parentElement) {
		const c = parse(getComputedStyle(e).backgroundColor);
		if (c.length === 3 || c[3] === 1) return c;
	}
	return [255, 255, 255];
}
function faint() {
	const out = new Set();
	for (const e of document.querySelectorAll("body *")) {
		const own = [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
		if (!own || e.closest("svg") || !e.checkVisibility()) continue;
		const a = luminance(parse(getComputedStyle(e).color)), b = luminance(behind(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) out.add(e.textContent.trim().slice(0, 40) + " " + ratio.toFixed(2));
	}
	return [...out];
}`
