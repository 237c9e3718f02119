package uitest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
)

// What is in trouble is seen at once: it is in the title of the tab, and first in the list. The list can be put into another
// order, and the address keeps what was chosen.
func TestTrouble(t *testing.T) {
	w := newWorld(t, page.Options{Names: []string{"zebra"}})
	for _, name := range []string{"archive", "mails", "reports"} {
		w.joins(name, elect.Options{ID: name + "-1"})
	}
	p := w.open("", 1280, 900)
	p.sees(text("count") + ` === "4 elections, 1 in trouble" && document.title === "(1) Elections"`)
	p.sees(`String(` + cells("Elections", 0) + `) === "zebra,archive,mails,reports"`)
	p.does(chromedp.Click(chromedp.CSS(`[aria-label="Elections"] th:first-child button`)))
	p.sees(`String(` + cells("Elections", 0) + `) === "archive,mails,reports,zebra" && document.querySelector("[aria-sort=ascending]").textContent === "Name"`)
	p.does(chromedp.Click(chromedp.CSS(`[aria-label="Elections"] th:first-child button`)))
	p.sees(`String(` + cells("Elections", 0) + `) === "zebra,reports,mails,archive"`)
	p.does(chromedp.Focus(chromedp.CSS("#find")), keys("e"))
	p.sees(`String(` + cells("Elections", 0) + `) === "zebra,reports,archive" && location.hash === "#/?find=e&sort=-Name"`)

	p = w.open("#/reports?find=e&sort=-Name", 1280, 900)
	p.sees(text("who") + ` === "reports-1" && String(` + cells("Elections", 0) + `) === "zebra,reports,archive"`)
	w.leaves["mails-1"]()
	p.sees(`document.title === "(2) reports – elections"`)
	p.does(chromedp.Click(chromedp.CSS(`[aria-label="Elections"] a[href*="zebra"]`)))
	p.sees(text("name") + ` === "zebra" && location.hash === "#/zebra?find=e&sort=-Name"`)
}

// Names that begin alike can be shown as one row, which says how many of them are in trouble; it is opened by a click, or by the keyboard. The
// address keeps which are open.
func TestGroups(t *testing.T) {
	w := newWorld(t, page.Options{Names: []string{"billing/late"}})
	for _, name := range []string{"archive", "billing/invoices", "billing/reminders", "stock/eu/orders", "stock/eu/prices", "stock/index"} {
		w.joins(name, elect.Options{ID: name + "-1"})
	}
	p := w.open("", 1280, 900)
	p.sees(`String(` + cells("Elections", 0) + `) === "billing/late,archive,billing/invoices,billing/reminders,stock/eu/orders,stock/eu/prices,stock/index"`)
	p.does(chromedp.Click(chromedp.CSS("#group")))
	p.sees(`String(` + cells("Elections", 0) + `) === "▸ billing/,archive,▸ stock/eu/,stock/index"`)
	p.sees(`String(` + cells("Elections", 3) + `) === "1 of 3 in trouble,at work,2 elections,at work" && location.hash === "#/?group=1"`)
	p.sees(text("count") + ` === "7 elections, 1 in trouble"`)
	p.does(chromedp.Focus(chromedp.CSS(`[aria-label="Elections"] a[href*="billing"]`)), keys(kb.Enter))
	p.sees(`String(` + cells("Elections", 0) + `) === "▾ billing/,late,invoices,reminders,archive,▸ stock/eu/,stock/index"`)
	p.sees(`location.hash === "#/?group=1&open=billing%2F" && document.activeElement.getAttribute("aria-expanded") === "true"`)
	p.does(chromedp.Click(chromedp.CSS(`[aria-label="Elections"] a[href^="#/billing/invoices"]`)))
	p.sees(text("name") + ` === "billing/invoices" && ` + text("who") + ` === "billing/invoices-1"`)
	p.does(chromedp.Click(chromedp.CSS(`[aria-label="Elections"] tr:first-child a`)))
	p.sees(`String(` + cells("Elections", 0) + `) === "▸ billing/,archive,▸ stock/eu/,stock/index" && ` + text("name") + ` === "billing/invoices"`)

	p = w.open("#/?group=1&open=stock%2Feu%2F&find=stock", 1280, 900)
	p.sees(`String(` + cells("Elections", 0) + `) === "▾ stock/eu/,orders,prices,stock/index"`)
	p.does(chromedp.Click(chromedp.CSS("#group")))
	p.sees(`String(` + cells("Elections", 0) + `) === "stock/eu/orders,stock/eu/prices,stock/index"`)
}
