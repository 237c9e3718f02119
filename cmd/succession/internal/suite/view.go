package suite

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/succession-dev/succession/cmd/succession/internal/suite/target"
	"github.com/succession-dev/succession/cmd/succession/internal/ui"
	"github.com/succession-dev/succession/conformance"
	"github.com/succession-dev/succession/conformance/linear"
)

// A view shows the results of the suite, to people or to programs, one at a time.
type view struct {
	form     ui.Format
	out, err io.Writer
	rules    []conformance.Rule
	id       int // width of the columns
	title    int
	failed   []conformance.Result
	wrong    error // the first write that failed
}

func newView(form ui.Format, out, err io.Writer, rules []conformance.Rule) *view {
	v := &view{form: form, out: out, err: err, rules: rules}
	for _, r := range rules {
		v.id, v.title = max(v.id, len(r.ID)), max(v.title, len(r.Title))
	}
	return v
}

// list prints the rules.
func (v *view) list() error {
	for _, r := range v.rules {
		needs := make([]string, len(r.Needs))
		for i, f := range r.Needs {
			needs[i] = string(f)
		}
		if v.form == ui.AsJSON {
			v.object(struct {
				ID    string   `json:"id"`
				Title string   `json:"title"`
				Rule  string   `json:"rule"`
				Needs []string `json:"needs"`
			}{r.ID, r.Title, r.Text, needs})
			continue
		}
		v.row(r.ID, r.Title, strings.Join(needs, ", "))
	}
	return v.wrong
}

// begin says what is about to happen.
func (v *view) begin(t *target.Target, able []conformance.Rule, about time.Duration) {
	v.begins(t, fmt.Sprintf("exercising %d of %s", len(able), ui.Count(len(v.rules), "rule")), about)
}

func (v *view) begins(t *target.Target, what string, about time.Duration) {
	session := "sessions without a time"
	if t.TTL() > 0 {
		session = fmt.Sprintf("a session time of %v", t.TTL())
	}
	fmt.Fprintf(v.err, "succession: %s, with %s: about %s\n", what, session, roughly(about))
	fmt.Fprintf(v.err, "succession: all names begin with %s, and are deleted afterwards\n", t.Prefix())
}

// records says that histories are about to be recorded.
func (v *view) records(t *target.Target, about time.Duration) {
	v.begins(t, "recording histories", about)
}

// struck shows a fault, to people.
func (v *view) struck(format string, args ...any) {
	fmt.Fprintf(v.err, "succession: "+format+"\n", args...)
}

// history shows a history, and whether it fits an order.
func (v *view) history(h *linear.History) (fits bool) {
	err := h.Check()
	if v.form == ui.AsJSON {
		o := struct {
			History string `json:"history"`
			Calls   int    `json:"calls"`
			Open    int    `json:"without_an_answer"`
			Fits    bool   `json:"fits"`
			Error   string `json:"error,omitempty"`
		}{History: h.Name(), Fits: err == nil}
		o.Calls, o.Open = h.Len()
		if err != nil {
			o.Error = err.Error()
		}
		v.object(o)
		return err == nil
	}
	if err != nil {
		v.print("%s: FAILED\n%v\n", h, err)
		return false
	}
	v.print("%s: fit an order\n", h)
	return true
}

// roughly rounds as people do who guess.
func roughly(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Minute:
		return d.Round(time.Minute)
	case d > time.Minute:
		return d.Round(10 * time.Second)
	}
	return max(d.Round(time.Second), time.Second)
}

// add shows one result.
func (v *view) add(r conformance.Result) {
	if r.Status == conformance.Failed {
		v.failed = append(v.failed, r)
	}
	switch {
	case v.form == ui.AsJSON:
		v.object(r)
	case r.Status == conformance.Impossible || r.Status == conformance.NotWired || r.Status == conformance.NotJudged:
		v.row(r.ID, r.Title, fmt.Sprintf("%s (%s)", r.Status, r.Reason))
	case r.Status == conformance.Failed:
		v.row(r.ID, r.Title, fmt.Sprintf("FAILED  %v", r.Took.Round(time.Millisecond)))
	default:
		v.row(r.ID, r.Title, fmt.Sprintf("%s  %v", r.Status, r.Took.Round(time.Millisecond)))
	}
}

// summary is the last object of -o json.
type summary struct {
	Name string `json:"name"`
	conformance.Counts
	Took        time.Duration `json:"took"` // in nanoseconds
	Interrupted bool          `json:"interrupted,omitempty"`
}

// end shows what failed, in full, and closes with a line.
func (v *view) end(r *conformance.Report) {
	s := summary{Name: r.Name, Counts: r.Counts(), Took: r.Took, Interrupted: r.Interrupted}
	if v.form == ui.AsJSON {
		v.object(map[string]summary{"summary": s})
		return
	}
	for _, r := range v.failed {
		v.print("\n%s\n", r)
	}
	interrupted := ""
	if s.Interrupted {
		interrupted = ", interrupted"
	}
	v.print("\n%s: %v, in %v%s\n",
		s.Name, s.Counts, s.Took.Round(10*time.Millisecond), interrupted)
}

func (v *view) row(id, title, rest string) {
	v.print("%s\n", strings.TrimRight(fmt.Sprintf("%-*s  %-*s  %s", v.id, id, v.title, title, rest), " "))
}

func (v *view) print(form string, args ...any) {
	if _, err := fmt.Fprintf(v.out, form, args...); err != nil && v.wrong == nil {
		v.wrong = err
	}
}

func (v *view) object(o any) {
	b, err := json.Marshal(o)
	if err != nil {
		v.wrong = err
		return
	}
	v.print("%s\n", b)
}
