package engine

// A Rule is one promise, and how to find out whether it is kept: [conformance.Rule] with
// its check.
//
// [conformance.Rule]: https://pkg.go.dev/github.com/succession-dev/succession/conformance#Rule
type Rule struct {
	ID, Title, Text string
	Needs           []Fault
	Check           func(*Trial)
}

// A Fault names something that rules need. Package conformance says what each is.
type Fault string

const (
	Expire     Fault = "Expire"
	Cut        Fault = "Cut"
	Mute       Fault = "Mute"
	Deafen     Fault = "Deafen"
	Sever      Fault = "Sever"
	Hide       Fault = "Hide"
	LoseAnswer Fault = "LoseAnswer"
	Kill       Fault = "Kill"
	Process    Fault = "Process"
	Restart    Fault = "Restart"
	Pause      Fault = "Pause"
	Remove     Fault = "Remove"
	Drop       Fault = "Drop"
	Reset      Fault = "Reset"
	Compact    Fault = "Compact"
	Rewind     Fault = "Rewind"
	Clock      Fault = "Clock"
	Cluster    Fault = "Cluster"
	Isolate    Fault = "Isolate"
	Requests   Fault = "Requests"

	Deadlines Fault = "Deadlines"
	Records   Fault = "Records"
	Pins      Fault = "Pins"
)

// IsAbility reports whether f is something that a backend can or cannot, and no harness
// provides.
func IsAbility(f Fault) bool { return f == Deadlines || f == Records || f == Pins }
