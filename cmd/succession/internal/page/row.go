package page

// A mood is how a state looks: it says no more than the state's text.
type mood string

const (
	good  mood = "good"
	busy  mood = "busy"
	bad   mood = "bad"
	quiet mood = "quiet"
)

// A row is one election, or one recipe, in the list.
type row struct {
	Name  string `json:"name"`
	Line  string `json:"line"` // tells rows of one name apart; the address of the detail
	Kind  kind   `json:"kind"`
	Who   string `json:"who,omitempty"` // leads
	Token uint64 `json:"token,omitempty,string"`
	Stand int    `json:"stand"` // how many stand in line, or how many items
	State string `json:"state"`
	Since int64  `json:"since,omitempty"` // this leads, or nobody does, since then, in milliseconds since 1970; 0 is unknown
	Mood  mood   `json:"mood"`
}

// A list is what a page is told of all rows.
type list struct {
	// All says that there are no other rows than these. Otherwise the others are as they were.
	All  bool  `json:"all,omitempty"`
	Rows []row `json:"rows"`
	// Error says why nothing newer is known, since a time in milliseconds since 1970; empty if all
	// is well.
	Error string `json:"error,omitempty"`
	Since int64  `json:"since,omitempty"`
	// Lost is since when the coordinator has not been heard from, in milliseconds since 1970; 0 while it is.
	// If the list is ready all the same, whatever else is told is what was known then.
	Lost int64 `json:"lost,omitempty"`
	// More is how many more lines there are than are looked at.
	More int `json:"more,omitempty"`
	// Ready is true when all lines have been read once since somebody looks and the coordinator is heard from. Until then the rows
	// are what was known before.
	Ready bool `json:"ready"`
}
