package metrics

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// ContentType is the content type of the text format, version 0.0.4, which every Prometheus reads.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// ServeHTTP answers GET and HEAD with all series, in Prometheus' text format. Register r under
// /metrics. If there is a registry already, add r to it by the module metrics/prometheus.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	var body bytes.Buffer
	r.WriteTo(&body) // a buffer takes everything
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.Write(body.Bytes())
}

// WriteTo writes all series to w, in Prometheus' text format. It returns how many bytes it has
// written. A file of it outlives the process, and goes on saying that this leads: alerts must heed its age.
func (r *Recorder) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for _, f := range r.Gather() {
		if len(f.Series) == 0 {
			continue
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s %[3]v\n", f.Name, escapeHelp.Replace(f.Help), f.Kind)
		for _, s := range f.Series {
			writeSeries(&b, f, s)
		}
	}
	return b.WriteTo(w)
}

func writeSeries(b *bytes.Buffer, f Family, s Series) {
	h := s.Histogram
	if h == nil {
		writeValue(b, f.Name, f.Labels, s.Labels, s.Value)
		return
	}
	names, sum := append(f.Labels, "le"), uint64(0) // Gather has made f.Labels for this call
	for i, n := range h.Counts {
		sum += n
		bound := "+Inf"
		if i < len(f.Bounds) {
			bound = number(f.Bounds[i])
		}
		writeValue(b, f.Name+"_bucket", names, append(s.Labels, bound), float64(sum))
	}
	writeValue(b, f.Name+"_sum", f.Labels, s.Labels, h.Sum)
	writeValue(b, f.Name+"_count", f.Labels, s.Labels, float64(sum))
}

func writeValue(b *bytes.Buffer, name string, labels, values []string, v float64) {
	b.WriteString(name)
	for i, label := range labels {
		before := byte(',')
		if i == 0 {
			before = '{'
		}
		b.WriteByte(before)
		b.WriteString(label + `="` + escapeLabel.Replace(values[i]) + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + number(v) + "\n")
}

// The characters that the format requires to be escaped. Names of elections are UTF-8, which it
// also requires.
var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// number writes v without loss and without an exponent, which people read badly.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
