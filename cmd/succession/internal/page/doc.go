// Package page is the command ui: a web page that shows all elections of a coordinator as they are, or a page for each of several
// coordinators and an overview of them.
//
// # Who asks the coordinator
//
// The server of the page asks, and never the browser. A [watcher] asks about all elections while somebody looks: in one
// request where the coordinator can tell all at once, and otherwise by the list of lines and the head of each. It rests nine
// times as long as it has worked. A [pulse] sends small requests of its own, and says whether the coordinator is heard from:
// if it is not, the page says at once since when, and nobody looks until it is. The election that is chosen on a page has an [observer], which watches its lines. However
// many pages show the same, there is one watcher, and one observer for each election that is chosen.
//
// What they have seen is a state ([row], [detail]) with a number that grows. A page has one stream
// ([stream]) of server-sent events. An event has a whole state, so a page that has missed some is
// right again with the next.
//
// Who led when ([account]) is what was seen, and what leaders have written down.
//
// Whoever may open pages, or fill a line, must not have the server ask, keep or send any amount: see bounds.go.
//
// # Several coordinators
//
// A [Server] has one [guard] and one bound on what is open. Behind that each coordinator has a [page], with a watcher, observers and acts
// of its own, which knows nothing of the others: so no name of an election needs that of its coordinator beside it, and what one coordinator
// does not answer keeps nobody else waiting. The first segment of a path says which page is meant, and the page sees the path without it. The
// overview needs no more than what the watchers know, and has a stream as the pages do.
//
// # What a candidate wrote
//
// IDs, values and names are text that anybody who may write to the coordinator has chosen. They are
// sent as JSON, and the scripts of the page set them as text. The page's policy (Content-Security-Policy)
// allows no script but its own files, and no markup that is made of strings.
package page
