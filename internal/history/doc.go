// Package history holds who led when: what the candidates of an election noted
// down, a checker that says which guarantee it shows to be broken, and a picture of
// it.
//
// A [Recorder] takes notes against one clock, a func that the caller gives it, so
// that it works in real time, over several processes of one machine, and in the
// virtual time of testing/synctest. A note is an [Event]: a candidate joined, won,
// found its term ended, failed a check, resigned, left. A fault that was put into
// the system is a [Fault], with the span of time that it lasted. Both are kept as
// JSON lines ([History.Write], [Read]); processes write one file each, and
// [Merge] puts them together.
//
// # What is checked
//
// [History.Check] looks for
//
//   - overlap: two terms of an election at the same time;
//   - token: a term whose token is not larger than that of a term before it;
//   - order: a term won from a place in line in front of which somebody stood who
//     won later;
//   - vacancy: nobody led for longer than a bound, while a candidate stood in line
//     that no fault touched;
//   - late: a term that ended after its deadline.
//
// A term whose member an operator took away ([Deposed]) is not held against
// anybody from then on: its leader may be cut off, and can then know of it only by
// its deadline.
//
// # What is not
//
// The checker believes the notes. A term counts from when its candidate noted that
// it had won, and until it noted the end. A candidate that asks again and again
// whether it leads dates its notes more exactly: it wins just before it asked and was told
// so for the first time, and leads until just before the last time ([Event].Led). Then
// nothing has to be forgiven, whenever the notes are taken. Where that is not known,
// what happened between the fact and the note is not seen, and [Rules].Notice says how
// much of it is forgiven. A candidate that stops noting, because it crashed, leaves a
// term without an end, which counts as led until the end of the history unless
// somebody notes its end for it.
//
// # The picture
//
// [History.SVG] draws a row for each candidate: a thin line where it stood in line,
// a bar with the token where it led, a shade where a fault touched it, and red
// around what the checker found.
package history
