package page

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/succession-dev/succession/cmd/succession/internal/door"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
)

// Without a token every user of the machine can open pages, whatever rights he has on the coordinator; and whoever may join a line
// may fill it. So there are bounds for what all pages together cost this process, and what they have it ask.
const (
	// maxStreams is how many pages are served at a time. Each takes a connection, and needs others for its files: see [door.Most].
	maxStreams = 100
	// maxObservers is how many elections are observed at a time. Each has two watches or more, which on Consul are connections
	// that candidates of this machine want too.
	maxObservers = 16
	// maxPictures is how many pictures are made at a time. A request reads a history for each.
	maxPictures = 4
	// maxActs is how many acts are under way at a time. Each asks the coordinator, and may wait for its answer.
	maxActs = 4
	// maxLines is how many lines are looked at.
	maxLines = 10_000
)

var (
	errManyStreams     = fmt.Errorf("%d pages are open already: close one, or start another server with: succession ui --listen", maxStreams)
	errManyConnections = fmt.Errorf("%d connections are open already: close a page, or start another server with: succession ui --listen", door.Most)
	errManyObservers   = fmt.Errorf("%d elections are observed already: close a page that shows another one", maxObservers)
	errManyPictures    = fmt.Errorf("%d pictures are being made already: try again in a moment", maxPictures)
	errManyActs        = fmt.Errorf("%d others are being done already: try again in a moment", maxActs)
	errUnlisted        = errors.New("it is not in the list, as nobody stands in its line: start the page with its name, as in: succession ui NAME")
)

// A quota is how many may do something at a time. It is safe for concurrent use.
type quota struct {
	most int

	mu    sync.Mutex
	taken int
}

// take reports whether one more may, who calls give afterwards.
func (q *quota) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken >= q.most {
		return false
	}
	q.taken++
	return true
}

func (q *quota) give() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
}

// full reports whether take would refuse.
func (q *quota) full() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken >= q.most
}

// bound cuts what others have written to what a page has room for.
func (d *detail) bound() {
	clip := func(all ...*string) {
		for _, s := range all {
			*s = ui.Clip(*s)
		}
	}
	clip(&d.State, &d.Untold)
	if l := d.Leader; l != nil {
		clip(&l.ID, &l.Value, &l.Site, &l.NotReady)
	}
	if p := d.Paused; p != nil {
		clip(&p.By, &p.Reason)
	}
	if m := d.Migration; m != nil {
		clip(&m.Phase, &m.ID, &m.From, &m.To)
		more := ui.And(len(m.Blocks)-ui.MaxRows, "succession migrate status -o json prints all")
		m.Blocks = slices.Clone(m.Blocks[:min(len(m.Blocks), ui.MaxRows)])
		for i := range m.Blocks {
			clip(&m.Blocks[i])
		}
		if more != "" {
			m.Blocks = append(m.Blocks, more)
		}
	}
	for i := range d.Tables {
		t := &d.Tables[i]
		clip(&t.Note)
		t.More = max(0, len(t.Rows)-ui.MaxRows)
		t.Rows = t.Rows[:len(t.Rows)-t.More]
		t.To = t.To[:min(len(t.To), len(t.Rows))] // which stays nil
		for _, row := range t.Rows {
			for i := range row {
				clip(&row[i])
			}
		}
	}
}
