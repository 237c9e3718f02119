// The page: what the server tells, shown. All that others have written is set as text.

import { $, set, plural } from "./text.js";
import { Rows } from "./rows.js";
import { draw, clock, lasting } from "./timeline.js";
import { can, offer, handOver } from "./acts.js";
import { Stream, health } from "./stream.js";

// ---- The list

const known = new Map(); // rows, by line
let chosen = ""; // the line of a row
let ready = false;
let beyond = 0; // how many lines are not looked at
let unheard = 0; // since when the server has not heard from the coordinator, by its clock

const server = new Stream(() => `events?show=${encodeURIComponent(chosen)}`, {
  list,
  detail: (d) => { if (d.line === chosen) show(d); },
  hint: (why) => hint(`${chosen}: ${why}`),
}, () => { reach(); showList(); });

const names = new Rows("Elections", [
  {
    title: "Name", text: (r) => (r.of ? `${r.open ? "▾" : "▸"} ${r.name}` : r.group ? r.name.slice(r.group.length) : r.name),
    href: (r) => (r.of ? `#/${chosen}${query(r.name)}` : `#/${r.line}${query()}`),
  },
  { title: "Leader", text: (r) => r.who || (r.kind === "election" ? "" : r.kind), size: "leads" },
  { title: "Token", is: "number", text: (r) => r.token || "", width: "84px", hide: "widest" },
  { title: "State", text: (r) => r.state, mood: (r) => r.mood, size: "state" },
  { title: "Since", text: (r) => (r.since ? clock(r.since) : ""), width: "86px", hide: "wide" },
  { title: "In line", is: "number", text: (r) => (r.of ? "" : String(r.stand)), width: "62px", hide: "narrow" },
], (r) => r.line, (title) => {
  if (order.by !== title) order = { by: title, down: false };
  else if (!order.down) order.down = true;
  else order = { by: "", down: false };
  keep();
  showList();
});
$("elections").append(names.element);

// By which column the list is in order, if the reader has chosen one. What is in trouble comes first otherwise.
let order = { by: "", down: false };
const severity = { bad: 0, busy: 1, good: 2, quiet: 2 };
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const values = {
  Name: (r) => r.name, Leader: (r) => r.who || "", Token: (r) => Number(r.token || 0), State: (r) => r.state, Since: (r) => r.since || 0, "In line": (r) => r.stand,
};

function inOrder(a, b) {
  const value = values[order.by];
  const first = value ? (order.down ? -1 : 1) * compare(value(a), value(b)) : severity[a.mood] - severity[b.mood];
  return first || compare(a.name, b.name) || compare(a.line, b.line);
}

// The groups that are open, by what the names in them begin with.
let opened = new Set();

// group returns what a name begins with that others may begin with too; "" if that is nothing.
const group = (name) => name.slice(0, name.lastIndexOf("/") + 1);

// groupsOf returns the rows of each group that has several.
function groupsOf(rows) {
  const groups = new Map();
  for (const r of rows) {
    const g = group(r.name);
    if (g && !groups.get(g)?.push(r)) groups.set(g, [r]);
  }
  for (const [g, of] of groups) if (of.length < 2) groups.delete(g);
  return groups;
}

// inGroups puts a row in front of each group, at the place of its first row, and leaves the others of it out unless it is open.
function inGroups(rows, groups) {
  const out = [], done = new Set();
  for (const r of rows) {
    const g = group(r.name), of = groups.get(g);
    if (!of) out.push(r);
    if (!of || done.has(g)) continue;
    done.add(g);
    const bad = of.filter((r) => r.mood === "bad").length, open = opened.has(g);
    const mood = of.reduce((worst, r) => (severity[r.mood] < severity[worst] ? r.mood : worst), "good");
    out.push({ name: g, line: g, of, open, kind: "election", mood, state: bad ? `${bad} of ${of.length} in trouble` : plural(of.length, "election") });
    if (open) out.push(...of.map((r) => ({ ...r, group: g })));
  }
  return out;
}

// query returns what the reader has chosen of the list, as the end of the address: whoever opens that sees the same. turn is a
// group that is closed in it if it is open, and the other way round.
function query(turn) {
  const q = new URLSearchParams();
  const find = $("find").value.trim();
  if (find) q.set("find", find);
  if ($("attention").checked) q.set("attention", "1");
  if (order.by) q.set("sort", (order.down ? "-" : "") + order.by);
  if ($("group").checked) q.set("group", "1");
  const open = opened.symmetricDifference(new Set(turn ? [turn] : []));
  if (open.size) q.set("open", [...open].join());
  return q.size ? `?${q}` : "";
}

// keep puts the choice into the address.
function keep() {
  history.replaceState(null, "", `#/${chosen}${query()}`);
  $("all").href = `#/${query()}`;
}

// recall takes the choice from the address.
function recall(text) {
  const q = new URLSearchParams(text);
  $("find").value = q.get("find") || "";
  $("attention").checked = q.get("attention") === "1";
  $("group").checked = q.get("group") === "1";
  opened = new Set((q.get("open") || "").split(",").filter(Boolean));
  const by = (q.get("sort") || "").replace(/^-/, "");
  order = by in values ? { by, down: q.get("sort").startsWith("-") } : { by: "", down: false };
  $("all").href = `#/${query()}`;
}

let troubled = 0; // how many are in trouble

function showList() {
  const find = $("find").value.trim().toLowerCase(), attention = $("attention").checked;
  const all = [...known.values()].sort(inOrder);
  const rows = all.filter((r) => (!attention || r.mood === "bad" || r.mood === "busy") &&
    (!find || r.name.toLowerCase().includes(find) || (r.who || "").toLowerCase().includes(find)));
  const bad = all.filter((r) => r.mood === "bad").length, busy = all.some((r) => r.mood === "busy");
  let count = ready ? plural(all.length, "election") : "being read";
  if (rows.length !== all.length) count = `${rows.length} of ${count}`;
  if (ready && beyond) count += `, and ${plural(beyond, "more line")} that ${beyond === 1 ? "is" : "are"} not looked at`;
  if (lost() || trouble) count = `${ready ? plural(all.length, "election") : "elections"}, how they are is unknown`;
  else if (ready) count += bad ? `, ${bad} in trouble` : busy ? ", none in trouble" : all.length ? ", all is well" : "";
  set($("count"), count);
  troubled = bad;
  titled();
  names.chosen = chosen;
  names.sorted(order.by, order.down ? "descending" : "ascending");
  const groups = groupsOf(rows);
  $("groups").hidden = groups.size === 0 && !$("group").checked;
  names.show($("group").checked ? inGroups(rows, groups) : rows, ready ? all.length ? "None is like that." : "Nobody stands in any line below this URL." : "");
}

function list(l) {
  if (l.all) known.clear();
  for (const r of l.rows) known.set(r.line, r);
  ready = l.ready;
  beyond = l.more || 0;
  unheard = l.lost || 0;
  trouble = l.error || "";
  troubleSince = l.since || 0;
  reach();
  showList();
}

// ---- What is known, and until when

let trouble = ""; // why the list is old although the coordinator is heard from
let troubleSince = 0; // since when nothing newer is known, by the server's clock

// lost returns since when nothing is known, by the server's clock; 0 if all is.
const lost = () => (unheard && server.deaf ? Math.min(unheard, server.deaf) : unheard || server.deaf);

// unknown reports whether nobody can say how the elections are now.
const unknown = () => lost() > 0 || trouble !== "" || !ready;

// until returns up to when all is known, by the server's clock.
const until = () => lost() || server.now();

// reach shows whether what the page says is known to be so.
function reach() {
  const since = lost();
  document.body.classList.toggle("old", unknown());
  if (server.deaf) health(`this page's server not reached since ${clock(server.deaf)}`, "bad");
  else if (unheard) health(`not reached since ${clock(unheard)}`, "bad");
  else if (trouble) health(`not known since ${clock(troubleSince)}`, "bad");
  else if (!ready) health("being read", "quiet");
  else health("live", "good");
  const who = server.deaf ? "The server of this page" : "The coordinator";
  const text = since ? `${who} has not been heard from since ${clock(since)}. What is shown is ${ready ? "what was known then" : "older"}.`
    : trouble && `Nothing newer is known since ${clock(troubleSince)}: ${trouble}`;
  $("trouble").hidden = !text;
  set($("trouble"), text);
  titled();
  now();
  past();
}

function titled() {
  const place = document.body.dataset.name; // of several coordinators
  const what = chosen ? `${chosen} – ${place || "elections"}` : place || "Elections";
  document.title = unknown() ? `(?) ${what}` : troubled ? `(${troubled}) ${what}` : what;
}

$("find").addEventListener("input", () => { keep(); showList(); });
$("find").addEventListener("keydown", (e) => {
  if (e.key === "ArrowDown") { e.preventDefault(); names.reveal(0); }
});
for (const box of ["attention", "group"]) $(box).addEventListener("change", () => { keep(); showList(); });

// ---- The chosen election

let detail = null;
let tables = new Map(); // by title

function facts(e, pairs) {
  const divs = pairs.filter(([, text]) => text).map(([title, text]) => {
    const div = document.createElement("div");
    div.appendChild(document.createElement("dt")).textContent = title;
    div.appendChild(document.createElement("dd")).textContent = text;
    return div;
  });
  if (e.textContent !== divs.map((d) => d.textContent).join("")) e.replaceChildren(...divs);
}

// hint says something in the place of a detail: one from before it would look as if it were so now.
function hint(text) {
  detail = null;
  $("chosen").hidden = true;
  $("hint").hidden = false;
  set($("hint"), text);
}

function show(d) {
  const before = detail;
  detail = d;
  $("hint").hidden = true;
  $("chosen").hidden = false;
  set($("name"), d.name);
  set($("kind"), d.kind);
  $("error").hidden = !d.error;
  set($("error"), d.error ? `What is shown may be old: ${d.error}` : "");

  const election = d.kind === "election";
  $("now").hidden = !election || !d.state;
  set($("who"), d.leader ? d.leader.id : "nobody");
  set($("state"), d.state || "");
  $("state").className = `mood ${d.mood || ""}`;
  now();
  offer(d);

  migration(d.migration);
  $("past").hidden = !election || !d.state;
  $("picture").href = `timeline.svg?name=${encodeURIComponent(d.name)}`;
  past();

  const wanted = new Set();
  for (const t of d.tables) part(t, wanted);
  if (election && d.state) {
    part({
      title: "Terms", empty: "No term was seen.",
      columns: [{ title: "Token", is: "number" }, { title: "Leader" }, { title: "From" }, { title: "To" }, { title: "Ended", hide: "wide" }],
      rows: (d.terms || []).map((t) => [t.token, t.id, (t.before ? "before " : "") + clock(t.from), (t.late ? "by " : "") + (t.to ? clock(t.to) : "lasts"), t.why || ""]).reverse(),
    }, wanted);
  }
  for (const [title, t] of tables) {
    if (!wanted.has(title)) { t.section.remove(); tables.delete(title); }
  }
  const who = (d) => d.leader ? `${d.leader.id} leads ${d.name}, token ${d.leader.token}` : d.paused ? `${d.name} is paused` : `nobody leads ${d.name}`;
  if (election && before?.line === d.line && who(before) !== who(d)) set($("say"), who(d));
}

// now shows what changes with time.
function now() {
  if (!detail) return;
  const l = detail.leader, p = detail.paused;
  const last = l && (detail.terms || []).findLast((t) => !t.to && t.token === l.token);
  const since = last
    ? `${last.before ? "before " : ""}${clock(last.from)}, ${lasting(until() - last.from)}` : "";
  facts($("facts"), [
    ["Token", l?.token], ["Since", since], ["Priority", l?.priority && String(l.priority)], ["Site", l?.site], ["Not ready", l?.notReady],
    ["Value", l?.value], ["Key", l?.key], ["Paused by", p?.by], ["Reason", p?.reason],
    ["In front of the gate", p?.front && plural(p.front, "candidate")],
  ]);
}

let redraw = 0; // when the picture has moved by a pixel

function past() {
  if (!detail || $("past").hidden) return;
  const { hidden, pixel } = draw($("timeline"), detail, server.now(), 1000 * Number($("range").value), lost());
  redraw = Date.now() + pixel;
  const told = (detail.terms || []).some((t) => t.told) ? "; other terms, paler, as their leaders wrote them down" : "";
  const untold = detail.untold ? ` The history cannot be read: ${detail.untold}` : "";
  set($("known"), `Seen since ${clock(detail.since)}${told}${hidden > 0 ? `; ${plural(hidden, "earlier leader")} in the table of terms` : ""}.${untold}`);
}
$("range").addEventListener("change", past);
new ResizeObserver(() => requestAnimationFrame(past)).observe($("timeline"));
const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
setInterval(() => { if (!document.hidden) { now(); if (Date.now() >= redraw) past(); } }, calm ? 10000 : 1000);

const path = ["begun", "asked", "sealed", "moved"];

function migration(m) {
  $("migration").hidden = !m || m.phase === "none";
  if (!m) return;
  const steps = path.includes(m.phase) ? path : [...path.slice(0, 1), m.phase];
  $("steps").replaceChildren(...steps.map((s) => {
    const li = document.createElement("li");
    li.textContent = s;
    if (s === m.phase) li.setAttribute("aria-current", "step");
    return li;
  }));
  facts($("route"), [["From", m.from], ["To", m.to], ["ID", m.id]]);
  $("blocked").hidden = m.blocks.length === 0;
  $("blocks").replaceChildren(...m.blocks.map((b) => {
    const li = document.createElement("li");
    li.textContent = b;
    return li;
  }));
  set($("next"), m.next ? `Next: ${m.next}` : "");
}

const widths = {
  "#": "44px", Token: "84px", Priority: "72px", Site: "12%", State: "22%", Key: "20%", Value: "24%", From: "24%", To: "21%", Ended: "21%",
};

// part shows a table of the detail.
function part({ title, columns, rows, more, empty, note, to }, wanted) {
  wanted.add(title);
  let t = tables.get(title);
  if (!t) {
    const section = document.createElement("section");
    section.className = "part";
    t = { section, h3: section.appendChild(document.createElement("h3")), note: section.appendChild(document.createElement("p")) };
    t.note.className = "note soft small";
    $("tables").append(section);
    tables.set(title, t);
  }
  t.to = to;
  const shape = columns.map((c) => c.title).join();
  if (t.shape !== shape) { // as when the first candidate with a priority comes
    t.shape = shape;
    t.list?.element.remove();
    const acts = to && can("resign");
    const name = columns.findIndex((c) => c.title === "Candidate");
    const shown = columns.map((c, i) => ({ ...c, text: (r) => r[i], width: widths[c.title] }));
    if (acts) { // make room for the buttons
      for (const c of shown) c.hide = { "#": "narrow", Token: "narrow", Key: "widest" }[c.title] || c.hide;
      shown.push({
        title: "", size: "act", text: () => "Hand over to",
        act: (r, i) => t.to[i] && { label: `Hand over to ${r[name]}`, run: () => handOver(r[name], t.to[i]) },
      });
    }
    t.list = new Rows(title, shown, (r, i) => `${i} ${r.at(-1)}`);
    t.section.append(t.list.element);
  }
  const said = [note, more && `These are the first ${rows.length}, and there are ${more} more: succession prints all with -o json.`].filter(Boolean).join(" ");
  set(t.note, said);
  t.note.hidden = !said;
  set(t.h3, rows.length ? `${title} (${rows.length + (more || 0)})` : title);
  t.list.show(rows, empty);
}

function choose() {
  if (location.hash && !location.hash.startsWith("#/")) return; // a link within the page
  const [asked, chosenOf = ""] = location.hash.slice(2).split("?");
  recall(chosenOf);
  const name = /^[\w.-]+(\/[\w.-]+)*$/.test(asked) ? asked : "";
  if (name === chosen && server.open) { showList(); return; }
  chosen = name;
  tables = new Map();
  $("tables").replaceChildren();
  hint(name ? `${name} is being read.` : "Choose an election to see its line, and who led when.");
  set($("done"), "");
  titled();
  document.body.classList.toggle("reading", name !== "");
  showList();
  server.connect();
}
addEventListener("hashchange", () => {
  const before = chosen;
  choose();
  if (chosen && chosen !== before && getComputedStyle($("elections").closest("section")).display === "none") $("detail").focus();
});

choose();
