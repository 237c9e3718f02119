package header

// These suffixes make the names of what package migrate keeps beside an election, and package spread too. Whoever has rights on an
// election needs them on these.
const (
	// MarksSuffix is of the line in which members stand whose processes know both coordinators of a migration.
	MarksSuffix = ".migrate-both"
	// GuardedSuffix is of the record with the names of the records that move with the election.
	GuardedSuffix = ".migrate-records"
	// NoteSuffix is added to the name of a record that has moved, for the record that says so.
	NoteSuffix = ".migrate-home"
	// ProbeSuffix is of the line and the record with which a migration is tried before it begins.
	ProbeSuffix = ".migrate-probe"
	// HomeSuffix is of the record of which of several clusters the election lives on.
	HomeSuffix = ".spread"
)
