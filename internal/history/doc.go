// Package history records who led when. It keeps what the candidates of an election noted,
// checks which guarantees the notes show to be broken, and draws a picture of them.
//
// A [Recorder] dates notes by a clock, which is a func that the caller gives it. So it works
// in real time, across several processes of one machine, and in the virtual time of
// testing/synctest. A note is an [Event]: a candidate joined, won, found its term ended,
// failed a check, resigned, or left. A fault that was injected is a [Fault], with the span of
// time that it lasted. Both are kept as JSON lines ([History.Write]). Each process writes its
// own file, and [Merge] puts the histories together.
//
// # What is checked
//
// [History.Check] looks for what breaks a [Rule].
//
// An operator may take a leader's member away ([Deposed]). The leader may be cut off, and can
// then learn of it only by its deadline. So its term is not held against others from then on.
//
// # What is not checked
//
// The checker believes the notes. A term counts from the note that it was won until the note
// that it ended. What happened between a fact and its note is not seen, and [Rules].Notice
// says how much of it is forgiven.
//
// A candidate that asks again and again whether it leads can date its notes more exactly. Its
// term counts from just before it first asked and was told that it led, until just before the
// last time ([Event].Led). Then nothing has to be forgiven, whenever the notes are taken.
//
// A candidate that crashes stops noting. Its term counts as led until the end of the history,
// unless somebody else notes its end.
//
// # The picture
//
// [History.SVG] draws a row for each candidate: a thin line while it stood in line,
// a bar with the token while it led, a shade while a fault touched it, and red
// around what the checker found.
package history
