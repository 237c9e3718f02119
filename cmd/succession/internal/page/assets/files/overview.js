// The overview: what the server tells of each coordinator, shown. All that others have written is set as text.

import { $, set, plural } from "./text.js";
import { Rows } from "./rows.js";
import { clock } from "./timeline.js";
import { Stream, health } from "./stream.js";

let all = []; // coordinators
const sum = (f) => all.reduce((n, c) => n + f(c), 0);

// unknown reports whether nobody can say how the elections of a coordinator are now.
const unknown = (c) => Boolean(c.lost || c.error);

// state says how a coordinator is, in words and as a mood.
function state(c) {
  if (c.lost) return [`not reached since ${clock(c.lost)}`, "bad"];
  if (c.error) return [`not known since ${clock(c.since)}`, "bad"];
  return c.ready ? ["live", "good"] : ["being read", "quiet"];
}

// notice says what is not known of a coordinator, and why.
function notice(c) {
  const since = c.lost ? `${c.name} has not been heard from since ${clock(c.lost)}` : `Of ${c.name} nothing newer is known since ${clock(c.since)}`;
  return since + (c.error ? `: ${c.error}` : ".");
}

const rows = new Rows("Coordinators", [
  { title: "Name", text: (c) => c.name, href: (c) => `${c.name}/` },
  { title: "State", text: (c) => state(c)[0], mood: (c) => state(c)[1] },
  { title: "Elections", is: "number", text: (c) => (c.ready ? `${c.elections}${c.more ? "+" : ""}` : ""), width: "92px", hide: "narrow" },
  {
    title: "In trouble", is: "number", width: "92px",
    text: (c) => (unknown(c) ? "?" : c.ready ? String(c.trouble) : ""), mood: (c) => (unknown(c) || !c.ready ? "quiet" : c.trouble ? "bad" : "good"),
  },
  { title: "URL", is: "code", text: (c) => c.url, hide: "wide" },
], (c) => c.name);
$("coordinators").append(rows.element);

const severity = (c) => (unknown(c) ? 0 : c.trouble ? 1 : 2);

function show() {
  const lost = all.filter(unknown), trouble = sum((c) => (unknown(c) ? 0 : c.trouble));
  document.body.classList.toggle("old", server.deaf > 0);
  rows.show([...all].sort((a, b) => severity(a) - severity(b)), ""); // which leaves others in the order of the command line
  let count = plural(all.length, "coordinator");
  if (lost.length) count += `, of which ${lost.length} cannot be looked at`;
  count += `; ${plural(sum((c) => c.elections), "election")}`;
  if (server.deaf) count = `${plural(all.length, "coordinator")}, how they are is unknown`;
  else if (all.some((c) => !c.ready && !unknown(c))) count += ", others are being read";
  else count += trouble ? `, ${trouble} in trouble` : lost.length || all.some((c) => c.more) ? "" : ", none in trouble"; // some may be paused
  set($("count"), count);
  if (server.deaf) health(`this page's server not reached since ${clock(server.deaf)}`, "bad");
  else health("live", "good");
  const text = server.deaf ? `The server of this page has not been heard from since ${clock(server.deaf)}. What is shown is what was known then.`
    : lost.map(notice).join("\n");
  $("trouble").hidden = !text;
  set($("trouble"), text);
  const known = server.deaf ? "?" : `${trouble || ""}${all.every((c) => c.ready && !unknown(c)) ? "" : "?"}`;
  document.title = known ? `(${known}) Elections` : "Elections";
}

const server = new Stream(() => "events", { coordinators: (now) => { all = now; show(); } }, show);
server.connect();
