package history_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"testing"
	"time"

	"github.com/succession-dev/succession/internal/history"
)

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
	}
}

// story returns two elections with an ordinary succession, faults of each shape, a removal by
// an operator, and a violation of each rule.
func story() *history.History {
	h := merge([]history.Fault{
		{Kind: "cut", Target: "web-1", From: 8 * sec, To: 24 * sec},
		{Kind: "pause", From: 40 * sec, To: 44 * sec},
		{Kind: "lose answer", Target: "web-3", From: 31 * sec, To: 31 * sec},
	},
		reign("web-1/a", 12, sec, sec, 16*sec),
		reign("web-2/a", 13, 2*sec, 18*sec, 34*sec),
		reign("web-1/a", 11, 25*sec, 52*sec, 53*sec),
		reign("web-3/a", 14, 3*sec, 30*sec, 50*sec),
		reign("web-4/<b> & c", 15, 4*sec, 34*sec, 36*sec),
		[]history.Event{ev(35*sec, history.Deposed, "web-4/<b> & c", 15, 0)},
	)
	mail := history.History{}
	for _, e := range reign("web-2/b", 16, 5*sec, 5*sec, 28*sec) {
		e.Election = "mail"
		mail.Events = append(mail.Events, e)
	}
	for _, e := range reign("web-3/b", 17, 6*sec, 45*sec, 60*sec) {
		e.Election = "mail"
		if e.Kind == history.Ended {
			e.Deadline = 58 * sec
		}
		mail.Events = append(mail.Events, e)
	}
	mail.Events = append(mail.Events, history.Event{At: 29 * sec, Kind: history.Joined, Election: "mail", Candidate: "web-4/b", Position: 18})
	return history.Merge(h, &mail)
}

func TestPicture(t *testing.T) {
	h := story()
	found := h.Check(history.Rules{Vacancy: 10 * time.Second})
	var got bytes.Buffer
	if err := h.SVG(&got, "A history with <faults> & broken rules", found); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, got.Bytes())
	const file = "testdata/story.svg"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the picture is not that of %s; look at it after go test -run Picture -update", file)
	}
}

// An empty history has a picture, too.
func TestEmptyPicture(t *testing.T) {
	var got bytes.Buffer
	if err := new(history.History).SVG(&got, "", nil); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, got.Bytes())
}

// Instants that no clock shows neither make a picture without end, nor a large one.
func TestPictureOfFarInstants(t *testing.T) {
	const far, near = time.Duration(math.MaxInt64), time.Duration(math.MinInt64)
	for _, span := range [][2]time.Duration{{near, far}, {near, near}, {far, far}, {0, far}, {near, 0}, {far - 5, far - 3}, {near, near + 1}} {
		h := history.Merge(merge([]history.Fault{{Kind: "cut", From: span[0], To: span[1]}}, reign("a", 1, span[0], span[0], span[1])))
		var got bytes.Buffer
		if err := h.SVG(&got, "", nil); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, got.Bytes())
		if n := got.Len(); n > 20_000 {
			t.Errorf("from %d to %d: the picture has %d bytes", span[0], span[1], n)
		}
	}
}
