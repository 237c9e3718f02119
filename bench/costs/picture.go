package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/succession-dev/succession/bench/internal/candidate"
)

// The sizes of a panel and of what is around its plot, in pixels.
const (
	panelWidth, panelHeight = 520, 340
	plotLeft, plotRight     = 60, 20
	plotTop, plotBottom     = 40, 48
)

const pictureStyle = `
text { font: 12px "DejaVu Sans", Verdana, sans-serif; fill: #24292f }
.head { font-size: 14px; font-weight: bold }
.soft { fill: #6e7781; font-size: 11px }
.grid { stroke: #d8dee4; stroke-width: 1 }
.curve { fill: none; stroke-width: 1.6 }
`

// Ours is blue and thick, the floor grey and dashed, and peers have the other colours.
const ourColour, floorColour = "#2f6fdf", "#8c959f"

var peerColours = []string{"#cf222e", "#bf8700", "#1a7f37", "#8250df", "#bc4c00", "#0a7ea4"}

// A curve is one library's in a panel.
type curve struct {
	name   string
	points [][2]float64
}

// A panel is a plot for one coordinator. Its axis of x is logarithmic, and that of y if logY is
// set.
type panel struct {
	title, x, y string
	logY        bool
	curves      []curve
}

// draw draws the pictures of the handovers into a folder.
func (b *book) draw(folder string) error {
	var spread, lengths []panel
	byCoordinator := make(map[string][]*figure)
	var order []string
	for _, f := range b.of(handover) {
		if len(f.Times) == 0 {
			continue
		}
		if byCoordinator[f.Coordinator] == nil {
			order = append(order, f.Coordinator)
		}
		byCoordinator[f.Coordinator] = append(byCoordinator[f.Coordinator], f)
	}
	for _, c := range order {
		figures := byCoordinator[c]
		title := figures[0].coordinator()
		n, processes := typical(figures)
		distribution := panel{title: fmt.Sprintf("%s, %d in line", title, n), x: "a handover takes at most, in ms", y: "share of handovers"}
		against := panel{title: title, x: "candidates in line", y: "median, in ms", logY: true}
		for _, f := range figures {
			if f.Processes != processes {
				continue
			}
			if f.N == n {
				distribution.add(f, cumulated(f.Times)...)
			}
			against.add(f, [2]float64{float64(f.N), inMS(f.quantile(0.5))})
		}
		spread, lengths = append(spread, distribution), append(lengths, against)
	}
	if err := os.WriteFile(filepath.Join(folder, "handover.svg"), svg(spread), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "lengths.svg"), svg(lengths), 0o644)
}

// typical returns the length for the distribution, 5 or the shortest, and the most processes.
func typical(figures []*figure) (n, processes int) {
	n = figures[0].N
	for _, f := range figures {
		if f.N == 5 {
			n = 5
		}
		processes = max(processes, f.Processes)
	}
	return n, processes
}

// cumulated returns the share of the times that are at most as long as each of them.
func cumulated(times []time.Duration) (points [][2]float64) {
	for i, t := range slices.Sorted(slices.Values(times)) {
		points = append(points, [2]float64{inMS(t), float64(i+1) / float64(len(times))})
	}
	return points
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// add adds points to the curve of the figure's library.
func (p *panel) add(f *figure, points ...[2]float64) {
	i := slices.IndexFunc(p.curves, func(c curve) bool { return c.name == f.library() })
	if i < 0 {
		i = len(p.curves)
		p.curves = append(p.curves, curve{name: f.library()})
	}
	p.curves[i].points = append(p.curves[i].points, points...)
}

// svg draws panels, two beside each other.
func svg(panels []panel) []byte {
	var b bytes.Buffer
	columns := min(2, len(panels))
	width, height := columns*panelWidth, (len(panels)+1)/2*panelHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n<style>%s</style>\n"+
		`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n", width, height, width, height, pictureStyle)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%2*panelWidth, i/2*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p *panel) draw(b *bytes.Buffer) {
	x := axis{from: plotLeft, to: panelWidth - plotRight, log: true}
	y := axis{from: panelHeight - plotBottom, to: plotTop, log: p.logY}
	for _, c := range p.curves {
		for _, at := range c.points {
			x.include(at[0])
			y.include(at[1])
		}
	}
	if y.log {
		y.low, y.high = y.low/1.2, 4*y.high // the names stand above the curves
	} else {
		y.low, y.high = 0, 1
	}
	text := func(class, anchor string, x, y float64, s string) {
		fmt.Fprintf(b, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, anchor, x, y, html.EscapeString(s))
	}
	text("head", "start", plotLeft, 20, p.title)
	text("soft", "end", x.to, panelHeight-8, p.x)
	text("soft", "start", plotLeft, plotTop-6, p.y)
	for _, v := range x.ticks() {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %.1fV%.1f"/>`+"\n", x.at(v), y.from, y.to)
		text("soft", "middle", x.at(v), y.from+16, fmt.Sprintf("%g", v))
	}
	for _, v := range y.ticks() {
		fmt.Fprintf(b, `<path class="grid" d="M%.1f %.1fH%.1f"/>`+"\n", x.from, y.at(v), x.to)
		text("soft", "end", x.from-6, y.at(v)+4, fmt.Sprintf("%g", v))
	}
	peers := 0
	for i, c := range p.curves {
		colour, more := peerColours[peers%len(peerColours)], ""
		switch c.name {
		case candidate.Ours:
			colour, more = ourColour, ` style="stroke-width:3"`
		case candidate.Floor:
			colour, more = floorColour, ` stroke-dasharray="5 3"`
		default:
			peers++
		}
		fmt.Fprintf(b, `<path class="curve" stroke="%s"%s d="`, colour, more)
		for j, at := range c.points {
			letter := "L"
			if j == 0 {
				letter = "M"
			}
			fmt.Fprintf(b, "%s%.1f %.1f", letter, x.at(at[0]), y.at(at[1]))
		}
		b.WriteString(`"/>` + "\n")
		// The names stand where curves of distributions leave room, or those of medians.
		left, top := x.to-200, y.from-14*float64(len(p.curves)-i)+4
		if p.logY {
			left, top = x.from+34, y.to+14*float64(i+1)
		}
		fmt.Fprintf(b, `<path class="curve" stroke="%s"%s d="M%.1f %.1fh18"/>`+"\n", colour, more, left-24, top-4)
		text("", "start", left, top, c.name)
	}
}

// An axis maps values to pixels.
type axis struct {
	from, to  float64
	log       bool
	low, high float64
}

func (a *axis) include(v float64) {
	if a.high == 0 {
		a.low, a.high = v, v
	}
	a.low, a.high = min(a.low, v), max(a.high, v)
}

func (a *axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	if high == low {
		return (a.from + a.to) / 2
	}
	return a.from + (a.to-a.from)*(v-low)/(high-low)
}

// ticks are 1, 2 and 5 of each power of ten between the ends, or the quarters.
func (a *axis) ticks() (out []float64) {
	if !a.log {
		return []float64{0, 0.25, 0.5, 0.75, 1}
	}
	for e := math.Floor(math.Log10(a.low)); e <= math.Ceil(math.Log10(a.high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			if v := m * math.Pow(10, e); v >= a.low*0.999 && v <= a.high*1.001 {
				out = append(out, v)
			}
		}
	}
	return out
}
