package uitest

import (
	"testing"

	"github.com/chromedp/chromedp"

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
