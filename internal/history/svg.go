package history

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// The sizes of the picture, in pixels.
const (
	svgPlot   = 1000 // the width of the time axis
	svgRow    = 36
	svgBar    = 18
	svgAbove  = 14 // the part of a row above its bar, for the kinds of faults
	svgChar   = 7  // the width of a character, about
	svgMargin = 24
	svgTitle  = 34 // the height of an election's name above its rows
	svgLegend = 40
	svgLine   = 19 // a line of the list of violations
)

const svgStyle = `
text { font: 12px "DejaVu Sans", Verdana, sans-serif; fill: #24292f }
.head { font-size: 14px; font-weight: bold }
.soft { fill: #6e7781 }
.stripe { fill: #f6f8fa }
.grid { stroke: #d8dee4; stroke-width: 1 }
.stand { stroke: #8c959f; stroke-width: 2 }
.tick { fill: #8c959f }
.term { fill: #2f6fdf }
.unaware { fill: #9db9ec }
.token { fill: #fff; font-size: 11px; font-weight: bold; text-anchor: middle }
.beside { fill: #2f6fdf; font-size: 10px; font-weight: bold }
.fault { fill: #e8a317; fill-opacity: .22 }
.moment { stroke: #bf8700; stroke-width: 1.5; stroke-dasharray: 3 2 }
.kind { fill: #7d5700; font-size: 9px }
.bad { fill: #cf222e; fill-opacity: .25; stroke: #cf222e; stroke-width: 2 }
.flag { fill: #cf222e }
.num { fill: #fff; font-size: 10px; font-weight: bold; text-anchor: middle }
.broken { fill: #cf222e; font-weight: bold }
`

// SVG writes a picture of the history, and marks the violations that a check has found in
// red. The title may be empty.
func (h *History) SVG(w io.Writer, title string, found []Violation) error {
	d := drawing{h: h, found: found, rows: make(map[row]int)}
	d.measure(title)
	d.draw(title)
	_, err := w.Write(d.b.Bytes())
	return err
}

type row struct{ election, candidate string }

type drawing struct {
	h         *History
	found     []Violation
	elections []string
	rows      map[row]int // the y of the top of each row
	from, to  time.Duration
	left      int // x of the beginning of the time axis
	top, base int // y of the top and the bottom of all rows
	b         bytes.Buffer
}

// maxInstant is how far from zero the time axis reaches. What lies beyond is drawn beside the picture: the span
// of the axis must be a Duration too.
const maxInstant = math.MaxInt64 / 4

func clip(t time.Duration) time.Duration { return min(max(t, -maxInstant), maxInstant) }

func (d *drawing) measure(title string) {
	d.from, d.to = d.h.Span()
	d.from, d.to = clip(d.from), clip(d.to)
	d.to = max(d.to, d.from+time.Millisecond)
	d.elections = d.h.Elections()
	y := svgMargin
	if title != "" {
		y += svgTitle
	}
	y += svgLegend
	d.top = y
	widest := 0
	for _, e := range d.elections {
		y += svgTitle
		for _, c := range d.h.Candidates(e) {
			d.rows[row{e, c}] = y
			widest = max(widest, utf8.RuneCountInString(c))
			y += svgRow
		}
	}
	d.base = y
	d.left = svgMargin + widest*svgChar + 20
}

// x returns the x of an instant.
func (d *drawing) x(t time.Duration) float64 {
	return float64(d.left) + svgPlot*(float64(t)-float64(d.from))/float64(d.to-d.from)
}

func (d *drawing) put(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *drawing) text(class string, x float64, y int, s string) {
	d.put(`<text class="%s" x="%.1f" y="%d">%s</text>`, class, x, y, html.EscapeString(clean(s)))
}

// clean replaces characters that XML cannot contain even if they are escaped.
func clean(s string) string {
	b := []rune(s)
	for i, r := range b {
		if r < ' ' || r == 0x7f || r == 0xfffe || r == 0xffff {
			b[i] = ' '
		}
	}
	return string(b)
}

func (d *drawing) draw(title string) {
	width := d.left + svgPlot + svgMargin + 16
	height := d.base + 2*svgMargin + 8
	if len(d.found) > 0 {
		height += (len(d.found) + 1) * svgLine
	}
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`, width, height, width, height)
	d.put("<style>%s</style>", svgStyle)
	d.put(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	y := svgMargin + 10
	if title != "" {
		d.text("head", svgMargin, y, title)
		y += svgTitle
	}
	d.legend(y)
	d.axis()
	d.faults()
	d.lines()
	for _, e := range d.elections {
		for _, t := range d.h.Terms(e) {
			d.term(t)
		}
	}
	d.violations()
	d.put("</svg>")
}

func (d *drawing) legend(y int) {
	x := float64(d.left)
	item := func(mark, label string) {
		d.put(mark, x, y-9)
		d.text("soft", x+36, y, label)
		x += 36 + float64(svgChar*len(label)) + 22
	}
	item(`<rect class="term" x="%.1f" y="%d" width="28" height="12" rx="3"/>`, "leads, with its token")
	item(`<rect class="unaware" x="%.1f" y="%d" width="28" height="12" rx="3"/>`, "over, and not noticed yet")
	item(`<rect class="stand" x="%.1f" y="%d" width="28" height="1" transform="translate(0 6)"/>`, "stands in line")
	item(`<rect class="fault" x="%.1f" y="%d" width="28" height="12"/>`, "fault")
	if len(d.found) > 0 {
		item(`<rect class="bad" x="%.1f" y="%d" width="28" height="12" rx="3"/>`, "broken rule")
	}
}

// axis draws the stripes of the rows, their names, and the grid of time.
func (d *drawing) axis() {
	for _, e := range d.elections {
		for i, c := range d.h.Candidates(e) {
			y := d.rows[row{e, c}]
			if i == 0 {
				d.text("head", svgMargin, y-8, e)
			}
			if i%2 == 0 {
				d.put(`<rect class="stripe" x="%d" y="%d" width="%d" height="%d"/>`, svgMargin-8, y, d.left+svgPlot-svgMargin+16, svgRow)
			}
			d.text("", svgMargin, y+svgAbove+13, c)
		}
	}
	step := tick(d.to - d.from)
	for t := (d.from + step - 1) / step * step; t <= d.to; t += step { // at most a dozen times
		x := d.x(t)
		d.put(`<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, d.top+svgTitle-6, x, d.base+4)
		d.put(`<text class="soft" x="%.1f" y="%d" text-anchor="middle">%s</text>`, x, d.base+20, t)
	}
}

// tick returns the distance between grid lines: about ten lines, at round times.
func tick(span time.Duration) time.Duration {
	steps := []time.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000}
	for _, s := range steps {
		if s *= time.Millisecond; span/s <= 12 {
			return s
		}
	}
	return max(span/10/time.Hour, 1) * time.Hour
}

// faults draws each fault in the rows of all candidates that it touches, and its kind in the
// first of them.
func (d *drawing) faults() {
	for _, f := range d.h.Faults {
		x1, x2 := d.x(f.From), d.x(f.To)
		for _, e := range d.elections {
			named := false
			for _, c := range d.h.Candidates(e) {
				if !f.touches(e, c) {
					continue
				}
				y := d.rows[row{e, c}]
				if x2-x1 < 1 {
					d.put(`<line class="moment" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x1, y, x1, y+svgRow)
				} else {
					d.put(`<rect class="fault" x="%.1f" y="%d" width="%.1f" height="%d"/>`, x1, y, x2-x1, svgRow)
				}
				if !named && (x2-x1 >= float64(6*len(f.Kind)) || x2-x1 < 1) {
					d.text("kind", x1+3, y+10, f.Kind)
					named = true
				}
			}
		}
	}
}

// lines draws the times in which candidates stood in line.
func (d *drawing) lines() {
	for _, e := range d.elections {
		for _, s := range d.h.standing(e) {
			y := d.rows[row{e, s.candidate}] + svgAbove + svgBar/2
			x1, x2 := d.x(s.from), d.x(s.to)
			d.put(`<line class="stand" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x1, y, x2, y)
			d.put(`<circle class="tick" cx="%.1f" cy="%d" r="3.5"/>`, x1, y)
			if s.deposed {
				d.put(`<path class="grid" style="stroke:#57606a;stroke-width:2" d="M%.1f %dl8 8m0 -8l-8 8"/>`, x2-4, y-4)
			}
		}
	}
}

func (d *drawing) term(t Term) {
	y := d.rows[row{t.Election, t.Candidate}] + svgAbove
	x1, x2 := d.x(t.From), max(d.x(t.To), d.x(t.From)+2)
	d.put(`<g><title>%s</title>`, html.EscapeString(clean(fmt.Sprintf("%s: token %d, from %v to %v: %s", t.Candidate, t.Token, t.From, t.To, t.Why))))
	bar := func(class string, x1, x2 float64) {
		d.put(`<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d" rx="3"/>`, class, x1, y, x2-x1, svgBar)
	}
	bar("term", x1, x2)
	if from := d.x(t.until()); x2-from > 1 {
		bar("unaware", from, x2)
	}
	label := fmt.Sprint(t.Token)
	if x2-x1 >= float64(svgChar*len(label)+6) {
		d.text("token", (x1+x2)/2, y+13, label)
	} else {
		d.text("beside", x2+4, y+8, label)
	}
	d.put("</g>")
}

// violations frames each violation, gives it a number, and lists it below the picture.
func (d *drawing) violations() {
	y := d.base + 2*svgMargin + 8
	flagged := make(map[[2]int]float64) // how far flags at one spot have moved aside
	for i, v := range d.found {
		n := fmt.Sprint(i + 1)
		x1, x2 := d.x(v.From), d.x(v.To)
		if x2-x1 < 6 {
			x1, x2 = x1-3, x1+3
		}
		for j, c := range slices.Compact(slices.Clone(v.Candidates)) {
			top, ok := d.rows[row{v.Election, c}]
			if !ok {
				continue
			}
			d.put(`<rect class="bad" x="%.1f" y="%d" width="%.1f" height="%d" rx="3"/>`, x1, top+svgAbove-3, x2-x1, svgBar+6)
			if j == 0 {
				at := [2]int{int(x1) / 17, top}
				x := x1 + flagged[at]
				flagged[at] += 17
				d.put(`<circle class="flag" cx="%.1f" cy="%d" r="8"/>`, x, top+svgAbove-3)
				d.text("num", x, top+svgAbove+1, n)
			}
		}
		d.put(`<circle class="flag" cx="%d" cy="%d" r="8"/>`, svgMargin+8, y-4)
		d.text("num", svgMargin+8, y, n)
		d.text("broken", svgMargin+24, y, fmt.Sprintf("%s at %v: %s", v.head(), v.From.Round(time.Millisecond), v.Text))
		y += svgLine
	}
}
