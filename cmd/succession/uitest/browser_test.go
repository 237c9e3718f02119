package uitest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/succession-dev/succession/backend"
	"github.com/succession-dev/succession/cmd/succession/internal/page"
	"github.com/succession-dev/succession/elect"
	"github.com/succession-dev/succession/elect/trace"
	"github.com/succession-dev/succession/memory"
)

// patience is how long a test waits for what must come. Nothing is measured by it.
const patience = 2 * time.Minute

var browser context.Context // of which each tab is a child

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		fmt.Fprintln(os.Stderr, "the page is tried in Chromium, which is not here; on Debian: apt-get install --no-install-recommends chromium")
		return 1
	}
	dir, err := os.MkdirTemp("", "uitest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(dir), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.NoFirstRun,
	}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-default-apps", "disable-extensions", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, end := chromedp.NewContext(allocator)
	defer end()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s does not start: %v\n", path, err)
		return 1
	}
	browser = ctx
	return m.Run()
}

// A world is a coordinator, and the page of its elections.
type world struct {
	*testing.T
	c      *memory.Coordinator
	url    string
	leaves map[string]func() // by id
}

func newWorld(t *testing.T, o page.Options) *world {
	t.Helper()
	c := memory.New(&memory.Options{TTL: time.Hour})
	return worldOf(t, c, c.Client("page"), o)
}

// worldOf is newWorld with a page of the elections on b.
func worldOf(t *testing.T, c *memory.Coordinator, b backend.Backend, o page.Options) *world {
	t.Helper()
	w := &world{T: t, c: c, leaves: make(map[string]func())}
	if o.URL == "" {
		o.URL = "etcd://h1:2379,h2:2379,h3:2379/app"
	}
	s := page.New(b, o)
	h := httptest.NewServer(s)
	w.url = h.URL
	t.Cleanup(func() {
		s.Close()
		h.Close()
		b.Close()
	})
	return w
}

// stands has a process stand in line.
func (w *world) stands(name, id, value string) {
	w.Helper()
	w.joins(name, elect.Options{ID: id, Value: value})
}

// joins is stands with more options.
func (w *world) joins(name string, o elect.Options) {
	w.Helper()
	b := w.c.Client(o.ID)
	ctx, cancel := context.WithCancel(context.Background())
	joined, ended := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(joined) })
	o.Trace = func(ev trace.Event) {
		if ev.Kind == trace.Joined { // again if it gives way
			once()
		}
	}
	go func() {
		defer close(ended)
		term, err := elect.New(b, name, &o).Campaign(ctx)
		if err != nil {
			return
		}
		term.Acknowledge(ctx)
		select {
		case <-ctx.Done():
		case <-term.Context().Done():
		}
		term.Resign(context.Background())
	}()
	select {
	case <-joined:
	case <-time.After(patience):
		w.Fatalf("%s does not stand in line for %s", o.ID, name)
	}
	w.leaves[o.ID] = func() {
		cancel()
		<-ended
		b.Close()
	}
	w.Cleanup(w.leaves[o.ID])
}

// A tab is one of the browser, with the page.
type tab struct {
	*testing.T
	ctx   context.Context
	close func()
}

// A step is an action of the browser.
type step = chromedp.Action[chromedp.Void]

// open opens the page in a tab as large as that, in pixels; hash is what the page shows.
func (w *world) open(hash string, width, height int64, steps ...step) *tab {
	w.Helper()
	ctx, close := chromedp.NewContext(browser)
	if err := chromedp.Do(ctx); err != nil { // without a bound, which would be one of the tab
		w.Fatal(err)
	}
	t := &tab{w.T, ctx, nil}
	t.close = sync.OnceFunc(func() {
		if trouble := says[[]string](t, `trouble`); len(trouble) > 0 {
			t.Errorf("the scripts of the page have failed: %q", trouble)
		}
		close()
	})
	w.Cleanup(t.close)
	t.does(onEachPage("trouble = []; addEventListener('error', (e) => trouble.push(e.message)); addEventListener('unhandledrejection', (e) => trouble.push(String(e.reason)))"))
	t.does(chromedp.EmulateViewport(width, height))
	t.does(steps...)
	t.does(chromedp.Navigate(w.url + "/" + hash))
	return t
}

// onEachPage is a step: the script is run in each page that comes, before its own.
func onEachPage(s string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: s})
		return err
	})
}

// theme is a step: the system prefers "light" or "dark".
func theme(name string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}

// keys is a step: the keys are pressed.
func keys(s string) step { return chromedp.KeyEvent(s) }

// script is a step: the script is run in the page.
func script(s string) step { return chromedp.Evaluate[chromedp.Void](s) }

func (t *tab) does(steps ...step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// loads does the steps, which make the browser load a page, and waits until it has.
func (t *tab) loads(steps ...step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// says returns what the expression is in the page.
func says[T any](t *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// sees waits until the condition, an expression, is true in the page.
func (t *tab) sees(condition string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	// The page is looked at whenever it changes.
	wait := `new Promise((done) => {
		const look = () => { if (!(` + condition + `)) return false; done(true); return true; };
		if (look()) return;
		const o = new MutationObserver(() => { if (look()) o.disconnect(); });
		o.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
	})`
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](wait, chromedp.EvalAwaitPromise)); err != nil {
		text, _ := chromedp.Run(t.ctx, chromedp.Evaluate[string](`document.body.innerText`))
		t.Fatalf("the page does not come to %s: %v; it says\n%s", condition, err, text)
	}
}

// text is an expression: the text of the element with an ID.
func text(id string) string { return `document.getElementById("` + id + `").textContent` }

// cells is an expression: the texts of a column of the table with a title, as far as it is made.
func cells(title string, column int) string {
	return fmt.Sprintf(`[...document.querySelectorAll('[aria-label=%q] tbody tr')].map((r) => r.children[%d].textContent)`, title, column)
}
