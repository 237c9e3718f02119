// Package naming has the table of all names that this module uses beside the name of an election, a
// lock, a queue or another recipe. No other package writes a suffix.
//
// If a name goes on after its suffix, as in NAME-values/7, a position, an item or a task follows.
package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/succession-dev/succession/backend"
)

// An Owner is the kind of thing to which a name belongs.
type Owner string

const (
	Election  Owner = "election" // and a mutex, which is one
	Migration Owner = "migration"
	Spread    Owner = "spread"
	Lock      Owner = "lock" // it has the lines of elections
	Semaphore Owner = "semaphore"
	Queue     Owner = "queue"
	Group     Owner = "group"
	Barrier   Owner = "barrier"
	Pool      Owner = "pool"
	Standby   Owner = "standby"
)

// A Use says what is stored under a name.
type Use string

const (
	Line   Use = "line"   // of members of sessions
	Items  Use = "items"  // a line of pinned members
	Record Use = "record" // or records, if the name goes on
)

// The suffixes.
const (
	Fence   = ".fence"   // the fence of an election, which outlives the deletion of its header
	History = ".history" // which candidate led when
	Unready = ".unready" // which candidates are not ready, by position

	Marks   = ".migrate-both"    // the members whose processes know both coordinators of a migration
	Guarded = ".migrate-records" // the names of the records that move with the election
	Note    = ".migrate-home"    // beside a record that moves: with which election, and whether it has
	Probe   = ".migrate-probe"   // for the trial before a migration begins

	Home   = ".spread"       // on which of several clusters the election lives; by itself, which cluster this is
	Moving = Home + "-moves" // by itself alone: the elections that are being moved

	Slots   = "-slots"
	Waiting = "-waiting"

	ItemsOf = "-items"
	Claims  = "-claims"
	Turn    = "-turn"

	Members = "-members"
	Values  = "-values"
	Owners  = "-owners"
	Item    = "-item-"

	Arrivals = "-arrivals"
	Open     = "-open"

	Todo     = "-todo"
	Workers  = "-workers"
	Master   = "-master"
	Assigned = "-assigned"
	Results  = "-results"

	Idle      = "-idle"
	Run       = "-run-"
	Tasks     = "-tasks"
	Positions = "-position"
	News      = "-news"
)

// A Row is one name of the table.
type Row struct {
	Owner  Owner
	Suffix string
	Use    Use
	// Next is what follows the suffix: a position, an item, a task; empty if nothing does.
	Next string
	Says string // what is there, for people
}

// Table has every name, the first line of each owner in front of its others.
var Table = []Row{
	{Election, Fence, Record, "", "the fence, which outlives the deletion of the election"},
	{Election, History, Record, "", "who led when"},
	{Election, Unready, Record, "/POSITION", "which candidates are not ready, and why"},
	{Election, Unready, Record, "", "that a candidate has become ready"},

	{Migration, Marks, Line, "", "who knows both coordinators"},
	{Migration, Guarded, Record, "", "the records that move with the election"},
	{Migration, Note, Record, "", "with which election the record NAME goes, and whether it has moved"},
	{Migration, Probe, Line, "", "a trial before the migration begins"},
	{Migration, Probe, Record, "", "a trial before the migration begins"},

	{Spread, Home, Record, "", "on which cluster the election lives"},

	{Semaphore, Slots, Line, "", "who holds it"},
	{Semaphore, Waiting, Line, "", "who waits"},

	{Queue, ItemsOf, Items, "", "the items"},
	{Queue, Claims, Line, "", "who has taken which"},
	{Queue, Turn, Line, "", "who waits for an item"},

	{Group, Members, Line, "", "who is present"},
	{Group, Values, Record, "/POSITION", "the values that members have set"},
	{Group, Owners, Record, "/ITEM", "who owned an item last"},
	{Group, Item, Line, "ITEM", "who owns an item, and who is next"},

	{Barrier, Arrivals, Line, "", "who is there"},
	{Barrier, Open, Record, "", "for whom it has opened"},

	{Pool, Todo, Items, "", "the tasks that are not done"},
	{Pool, Workers, Line, "", "the workers"},
	{Pool, Master, Line, "", "who assigns the tasks"},
	{Pool, Assigned, Record, "/POSITION", "what a worker is to run"},
	{Pool, Results, Record, "/POSITION", "how a task has ended"},

	{Standby, Run, Line, "TASK", "which machine runs a task, and which are hot"},
	{Standby, Idle, Line, "", "machines that are cold"},
	{Standby, Tasks, Record, "/TASK", "whether a task is to run"},
	{Standby, Positions, Record, "/TASK", "how far a task has come"},
	{Standby, News, Record, "", "that a task was started"},
}

// At returns the name of what follows suffix and is called by a position.
func At(name, suffix string, position uint64) string {
	return name + suffix + "/" + strconv.FormatUint(position, 10)
}

// longest is how many bytes may follow a suffix in a name that a position ends.
const longest = len("/18446744073709551615")

// Check fails with [backend.ErrInvalid] if the owner cannot have the name: because it is not a
// name, or because a name that the owner uses beside it would be too long. The names of items and
// tasks are checked when they are used.
func Check(owner Owner, name string) error {
	if err := backend.CheckName(name); err != nil {
		return fmt.Errorf("%s: %w", owner, err)
	}
	for _, r := range Table {
		most := backend.MaxName - len(r.Suffix)
		beside := r.Suffix
		if r.Next == "/POSITION" {
			most, beside = most-longest, beside+r.Next
		}
		if r.Owner == owner && len(name) > most {
			return fmt.Errorf("%w name %.32q... of a %s: %d bytes, at most %d are possible, as it also uses the name NAME%s",
				backend.ErrInvalid, name, owner, len(name), most, beside)
		}
	}
	return nil
}

// Beside returns the name with the suffix. If that would be too long, a hash takes the place of the end of the name, so that two long
// names never have the same one beside them.
func Beside(name, suffix string) string {
	if len(name)+len(suffix) <= backend.MaxName {
		return name + suffix
	}
	hash := sha256.Sum256([]byte(name))
	end := "." + hex.EncodeToString(hash[:16])
	return name[:backend.MaxName-len(end)-len(suffix)] + end + suffix
}

// OfElection returns the name of the record of an election with that suffix. It returns "" if the name of the
// election is too long for it: then the election does without.
func OfElection(election, suffix string) string {
	if len(election)+len(suffix) > backend.MaxName {
		return ""
	}
	return election + suffix
}

// OfTask returns the names of the records of a standby's task, if the line may be that of the machines
// which run it. A name such as a-run-b-run-c may be that of two tasks.
func OfTask(line string) (records []string) {
	for at := range line {
		if task, is := strings.CutPrefix(line[at:], Run); is && at > 0 && task != "" && !strings.Contains(task, "/") {
			records = append(records, line[:at]+Tasks+"/"+task, line[:at]+Positions+"/"+task)
		}
	}
	return records
}

// Kept reports whether the name is one that an election, a migration or package spread keeps something under, and of which election
// (or, for a migration's note, of which record). No election has such a name: both would write there.
func Kept(name string) (of string, by Owner, kept bool) {
	if at := strings.Index(name, Unready+"/"); at > 0 {
		return name[:at], Election, true
	}
	if name == Home || strings.HasPrefix(name, Home+"-") {
		return "", Spread, true // what package spread keeps for all elections
	}
	for _, r := range Table {
		if of, found := strings.CutSuffix(name, r.Suffix); found && of != "" && slices.Contains(keepers, r.Owner) {
			return of, r.Owner, true
		}
	}
	return "", "", false
}

// CheckElection fails with [backend.ErrInvalid] if no election can have the name or, if history is set, none
// of which a history is kept.
func CheckElection(name string, history bool) error {
	if err := backend.CheckName(name); err != nil {
		return err
	}
	if of, by, kept := Kept(name); kept {
		return fmt.Errorf("%w name %q: something of the election %q (%s) is kept under that name; choose another, such as one with a hyphen for the dot", backend.ErrInvalid, name, of, by)
	}
	if history && OfElection(name, History) == "" {
		return fmt.Errorf("%w name %.32q...: it is too long to have a history; at most %d bytes are possible", backend.ErrInvalid, name, backend.MaxName-len(History))
	}
	return nil
}

// keepers are those in the table whose names begin with the name of an election.
var keepers = []Owner{Election, Migration, Spread}

// If the name is that of a record which says that a member is not ready, UnreadyMember returns the
// election and the position of the member.
func UnreadyMember(name string) (election string, position uint64, ok bool) {
	election, at, found := strings.Cut(name, Unready+"/")
	position, ok = Position(at)
	return election, position, found && election != "" && ok
}

// Position returns the position that a name says, if it is written as this module writes positions:
// 7 and 007 are two names.
func Position(name string) (at uint64, ok bool) {
	at, err := strconv.ParseUint(name, 10, 64)
	return at, err == nil && strconv.FormatUint(at, 10) == name
}
