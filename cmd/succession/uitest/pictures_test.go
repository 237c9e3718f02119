package uitest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	_, err = operate.New(w.client("ops"), "stock/prices", "anna@ops-1").Pause(ctx, "the price list is <b>replaced</b>; see ticket 4711")
	must(err)

	mails := queue.New(w.client("mails"), "mails", &queue.Options{Options: elect.Options{ID: "sender-1"}})
	for _, to := range []string{"anna", "bert", "cora"} {
		_, err = mails.Put(ctx, "to "+to+"@example.com")
		must(err)
	}
	_, err = mails.Take(ctx)
	must(err)

	slots := lock.NewSemaphore(w.client("slots"), "render", 2, &elect.Options{ID: "render-1"})
	for range 2 {
		_, err := slots.Acquire(ctx)
		must(err)
	}

	for _, id := range []string{"collector-1", "collector-2", "collector-3"} {
		g := group.New(w.client(id), "collectors", &elect.Options{ID: id, Value: "zone " + id[len(id)-1:]})
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
	troubled(t)
	moving(t)
	of := several(t)
	for _, looks := range []string{"light", "dark"} {
		p := of["orders"].open("", 1280, 370, theme(looks))
		p.sees(night)
		of["orders"].pictureOf(p, "ui-several-"+looks)
		p.close()
	}
}

// troubled makes the pictures of what somebody has to look at: elections in trouble, and a coordinator that is not heard from.
func troubled(t *testing.T) {
	w := newWorld(t, page.Options{Names: []string{"reports/monthly"}})
	for _, name := range []string{"billing/invoices", "billing/reminders", "catalog/prices", "images/thumbnails", "stock/orders"} {
		w.joins(name, elect.Options{ID: "node-1", History: 10})
	}
	w.joins("catalog/import", elect.Options{ID: "node-5", Ready: func(context.Context) error { return errors.New("the database is being restored") }})
	w.joins("mails/digest", elect.Options{ID: "node-6", History: 10})
	w.leaves["node-6"]()
	for i := range 7 { // it is started again and again
		w.joins("search/ranking", elect.Options{ID: fmt.Sprintf("node-%d", 7+i%2), History: 20})
		w.awaitsTerms("search/ranking", i+1)
		time.Sleep(time.Second)
		w.leaves[fmt.Sprintf("node-%d", 7+i%2)]()
	}
	w.joins("search/ranking", elect.Options{ID: "node-8", History: 20})
	first := w.open("#/search/ranking", 1280, 760)
	first.sees(`document.title.startsWith("(4) ")`)
	for _, looks := range []string{"light", "dark"} {
		w.picture(looks, "ui-trouble-"+looks, "#/search/ranking", 1280, 760)
	}
	time.Sleep(5 * time.Second)
	w.c.Pause()
	defer w.c.Resume()
	first.sees(`document.body.classList.contains("old")`)
	time.Sleep(20 * time.Second)
	w.pictureOf(first, "ui-unreached")
}

// awaitsTerms waits until the history of the election tells of so many terms.
func (w *world) awaitsTerms(name string, n int) {
	w.Helper()
	b := w.c.Client("reader")
	defer b.Close()
	s, err := b.Session(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for at := backend.Version(backend.Absent); ; {
		terms, err := operate.New(b, name, "").History(ctx)
		if err == nil && len(terms) >= n {
			return
		}
		r, err := s.Watch(ctx, name+".history", at)
		if err != nil {
			w.Fatalf("%s has %d terms: %v", name, len(terms), err)
		}
		at = r.Version
	}
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
	w.pictureOf(p, name)
}

// pictureOf writes a picture of a tab as it is.
func (w *world) pictureOf(p *tab, name string) {
	w.Helper()
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		w.Fatal(err)
	}
	f, err := os.Create(filepath.Join(*pictures, name+".png"))
	if err != nil {
		w.Fatal(err)
	}
	if err := errors.Join(small(f, shot), f.Close()); err != nil {
		w.Fatal(err)
	}
}

// small writes a picture in its 256 most frequent colours, with the nearest of them in the place of others: those are on the edges of
// letters. It takes a third of the room.
func small(to io.Writer, shot []byte) error {
	full, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	count := make(map[color.RGBA]int)
	all := full.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := all.Min.Y; y < all.Max.Y; y++ {
		for x := all.Min.X; x < all.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	var palette color.Palette
	for _, c := range frequent[:min(256, len(frequent))] {
		palette = append(palette, c)
	}
	nearest := make(map[color.RGBA]uint8)
	for c := range count {
		nearest[c] = uint8(palette.Index(c))
	}
	few := image.NewPaletted(all, palette)
	for y := all.Min.Y; y < all.Max.Y; y++ {
		for x := all.Min.X; x < all.Max.X; x++ {
			few.SetColorIndex(x, y, nearest[at(x, y)])
		}
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	return encoder.Encode(to, few)
}
