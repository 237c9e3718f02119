package uitest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/operate"
	"github.com/succession-dev/succession/memory"
	"github.com/succession-dev/succession/migrate"
	"github.com/succession-dev/succession/recipes/group"
	"github.com/succession-dev/succession/recipes/lock"
	"github.com/succession-dev/succession/recipes/queue"
)

var pictures = flag.String("pictures", "", "the folder that the pictures of the page are written to; empty: they are not written")

// client returns a client of the coordinator, for as long as the test takes.
func (w *world) client(name string) backend.Backend {
	b := w.c.Client(name)
	w.Cleanup(func() { b.Close() })
	return b
}

// goes runs f until the test ends, and waits for that.
func (w *world) goes(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f(ctx)
	}()
	w.Cleanup(func() {
		cancel()
		<-ended
	})
}

// invoicer is a candidate of the election in most pictures.
func invoicer(n int) elect.Options {
	id := fmt.Sprintf("web-%d", n)
	o := elect.Options{ID: id, Value: "http://" + id + ".example.com:8080", Site: "fra", History: 100}
	switch n {
	case 3:
		o.Ready = func(context.Context) error { return errors.New("the cache is cold") }
	case 4:
		o.Site, o.Priority = "ams", -1
	}
	return o
}

// gallery fills a coordinator with something of each kind.
func gallery(w *world) {
	w.Helper()
	for i := range 4 {
		w.joins("billing/invoices", invoicer(i+1))
	}
	for _, name := range []string{"backup/nightly", "billing/reminders", "catalog/prices", "images/thumbnails", "search/index", "stock/orders"} {
		w.stands(name, "node-"+name[:2]+"-1", "")
		w.stands(name, "node-"+name[:2]+"-2", "")
	}
	must := func(err error) {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
	}
	// A leader of another library does not hear that it is asked to resign.
	foreign := w.client("foreign")
	s, err := foreign.Session(context.Background())
	must(err)
	_, err = s.Join(context.Background(), "legacy/cron", "cron-7", "")
	must(err)
	_, err = operate.New(foreign, "legacy/cron", "").AskToResign(context.Background(), nil)
	must(err)

	ctx := context.Background()
	w.stands("stock/prices", "node-st-1", "")
	must(operate.New(w.client("ops"), "stock/prices", "anna@ops-1").Pause(ctx, "the price list is <b>replaced</b>; see ticket 4711"))

	mails := queue.New(w.client("mails"), "mails", &queue.Options{Options: elect.Options{ID: "sender-1"}})
	for _, to := range []string{"anna", "bert", "cora"} {
		must(mails.Put(ctx, "to "+to+"@example.com"))
	}
	_, err = mails.Take(ctx)
	must(err)

	slots := lock.NewSemaphore(w.client("slots"), "render", 2, &lock.Options{ID: "render-1"})
	for range 2 {
		_, err := slots.Acquire(ctx)
		must(err)
	}

	for _, id := range []string{"collector-1", "collector-2", "collector-3"} {
		g := group.New(w.client(id), "collectors", &group.Options{ID: id, Value: "zone " + id[len(id)-1:]})
		p, err := g.Join(ctx)
		must(err)
		w.goes(func(ctx context.Context) {
			p.Assign(ctx, []string{"mail", "web", "disk", "net"}, func(ctx context.Context, _ string, _ *elect.Term) error {
				<-ctx.Done()
				return nil
			})
		})
	}
}

// TestPictures makes the pictures of the docs.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("give a folder with -pictures")
	}
	w := newWorld(t, page.Options{Allow: []page.Act{page.Resign, page.Pause}, Names: []string{"reports/monthly"}})
	gallery(w)
	change := func(n, seconds int) {
		time.Sleep(time.Duration(seconds) * time.Second) // so that there is a history to see
		o := invoicer(n)
		w.leaves[o.ID]()
		w.joins("billing/invoices", o)
	}
	change(1, 4)
	change(2, 5)
	first := w.open("#/billing/invoices", 1280, 900)
	first.sees(text("who") + ` === "web-1"`)
	change(1, 4)
	first.sees(text("who") + ` === "web-2"`)
	change(2, 7)
	first.sees(text("who") + ` === "web-1"`)
	time.Sleep(4 * time.Second)
	w.picture("light", "ui-light", "#/billing/invoices", 1280, 900)
	w.picture("dark", "ui-dark", "#/billing/invoices", 1280, 900)
	w.picture("light", "ui-narrow", "#/billing/invoices", 400, 860)
	w.picture("light", "ui-paused", "#/stock/prices", 1280, 480)
	w.picture("light", "ui-queue", "#/mails-items", 1280, 480)
	moving(t)
}

// moving makes the pictures of a migration that the leader blocks.
func moving(t *testing.T) {
	from, to := memory.New(&memory.Options{TTL: time.Hour}), memory.New(&memory.Options{TTL: time.Hour})
	o := &migrate.Options{From: "zookeeper://zk1:2181,zk2:2181/app", To: "etcd://h1:2379,h2:2379/app"}
	b := migrate.New(from.Client("page"), to.Client("page"), o)
	w := worldOf(t, from, b, page.Options{URL: "migrate:?from=" + o.From + "&to=" + o.To})
	w.stands("reports", "web-1", "")
	if _, err := b.Begin(t.Context(), "reports"); err != nil {
		t.Fatal(err)
	}
	both := migrate.New(from.Client("web-2"), to.Client("web-2"), o)
	w.Cleanup(func() { both.Close() })
	w.goes(func(ctx context.Context) {
		elect.New(both, "reports", &elect.Options{ID: "web-2"}).Run(ctx, func(ctx context.Context, _ *elect.Term) error {
			<-ctx.Done()
			return nil
		})
	})
	w.picture("dark", "ui-migration", "#/reports", 1280, 700)
}

// picture writes a picture of the page.
func (w *world) picture(looks, name, hash string, width, height int64) {
	w.Helper()
	p := w.open(hash, width, height, theme(looks))
	defer p.close() // a browser keeps six streams open at most
	p.sees(text("count") + `.includes("election")`)
	if hash != "" {
		p.sees(`document.querySelectorAll("#tables tbody tr").length > 0`)
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o644); err != nil {
		w.Fatal(err)
	}
}
