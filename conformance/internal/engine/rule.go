package engine

// A Rule is one promise, with a check that finds out whether it is kept. Its fields are those
// of [conformance.Rule].
//
// [conformance.Rule]: https://pkg.go.dev/github.com/succession-dev/succession/conformance#Rule
type Rule struct {
	ID, Title, Text string
	Needs           []Fault
	Check           func(*Trial)
	// Most is how many requests a rule that counts them allows, if the harness does not say that for this
	// coordinator; see [Trial.Most]. 0 for other rules.
	Most int64
	// Crowd says that the rule has a dozen clients or more, which come at the same time. One such rule is exercised at once.
	Crowd bool
}

// A Fault names a fault or an ability that rules need. Package conformance documents each.
type Fault string

const (
	Expire        Fault = "Expire"
	Cut           Fault = "Cut"
	Mute          Fault = "Mute"
	Deafen        Fault = "Deafen"
	Sever         Fault = "Sever"
	Hide          Fault = "Hide"
	LoseAnswer    Fault = "LoseAnswer"
	HoldBack      Fault = "HoldBack"
	Kill          Fault = "Kill"
	Process       Fault = "Process"
	Restart       Fault = "Restart"
	Pause         Fault = "Pause"
	Remove        Fault = "Remove"
	Drop          Fault = "Drop"
	Reset         Fault = "Reset"
	Compact       Fault = "Compact"
	Rewind        Fault = "Rewind"
	Promote       Fault = "Promote"
	PromoteBeside Fault = "PromoteBeside"
	Clock         Fault = "Clock"
	Cluster       Fault = "Cluster"
	Isolate       Fault = "Isolate"
	Failover      Fault = "Failover"
	Requests      Fault = "Requests"
	Bytes         Fault = "Bytes"

	Deadlines Fault = "Deadlines"
	Records   Fault = "Records"
	Shares    Fault = "Shares"
	Pins      Fault = "Pins"
	Items     Fault = "Items"
	Places    Fault = "Places"
)

// IsAbility reports whether f is an ability of a backend, and not a fault that a harness
// provides.
func IsAbility(f Fault) bool {
	return f == Deadlines || f == Shares || f == Records || f == Pins || f == Items || f == Places
}
