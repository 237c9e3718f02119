// What may be done: each act asks back first, and says what has come of it.

import { $ } from "./text.js";

const allowed = document.body.dataset.allow.split(" ").filter(Boolean);
export const can = (act) => allowed.includes(act);

let detail = null; // the election that is shown

// offer shows the buttons for what may be done with an election.
export function offer(d) {
  detail = d;
  const free = d.state && !d.paused && !d.closed;
  const shown = { resign: can("resign") && free && d.leader, pause: can("pause") && free && !d.noPause, resume: can("pause") && d.paused };
  const at = document.activeElement;
  for (const id in shown) $(id).hidden = !shown[id];
  $("acts").hidden = !Object.values(shown).some(Boolean);
  if (at.closest("#acts") && (at.hidden || $("acts").hidden)) refocus();
}

// refocus gives the keyboard a place when its button has gone.
function refocus() {
  (document.querySelector("#acts:not([hidden]) button:not([hidden])") || $("detail")).focus();
}

// ask asks back. It resolves to the reason, or "" where none is wanted; to null if nothing is to be done.
function ask({ title, text, note, yes, reason = false }) {
  $("ask-title").textContent = title;
  $("ask-text").textContent = text;
  $("ask-note").textContent = note;
  $("ask-yes").textContent = yes;
  $("ask-why").hidden = !reason;
  $("why").required = reason;
  $("why").value = "";
  const box = $("ask");
  box.returnValue = "no";
  box.showModal();
  (reason ? $("why") : $("ask-no")).focus();
  return new Promise((resolve) => {
    box.onclose = () => {
      if (box.open) return; // that was the last one, which was closed a moment ago
      if (document.activeElement === document.body) refocus(); // its button has gone meanwhile
      resolve(box.returnValue === "yes" ? $("why").value.trim() : null);
    };
  });
}
$("ask-no").addEventListener("click", () => $("ask").close("no"));

// act asks back with what, and has the server do it.
async function act(path, body, success, what) {
  const reason = await ask(what);
  if (reason === null) return;
  if (what.reason) body.reason = reason;
  const done = $("done");
  const say = (text, bad) => {
    if (detail?.name !== body.name) return;
    done.className = bad ? "done bad" : "done";
    done.textContent = text;
  };
  say("", false);
  try {
    const r = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Succession-Page": "1" },
      body: JSON.stringify(body),
    });
    const text = (await r.text()).trim();
    if (r.ok) say(success, false);
    else say(r.status === 504 ? text : `That has failed: ${text}`, true); // 504: it goes on
  } catch (e) {
    say(`That has failed: ${e.message}`, true);
  }
}

const leads = ({ name, leader }) => `${leader.id} leads ${name} with token ${leader.token}.`;

$("resign").addEventListener("click", () => {
  const { name, leader } = detail;
  act("resign", { name, token: leader.token }, `${leader.id} was asked to resign.`, {
    title: "Ask to resign?", text: leads(detail), yes: "Ask to resign", reason: true,
    note: "The leader ends its work first. The next in line leads then.",
  });
});

// handOver asks the leader to resign in favour of the candidate with the key.
export function handOver(id, to) {
  const { name, leader } = detail;
  act("resign", { name, token: leader.token, to }, `${leader.id} was asked to hand over to ${id}.`, {
    title: `Hand over to ${id}?`, text: leads(detail), yes: "Hand over", reason: true,
    note: "The leader ends its work first. Candidates in front give way, but for those of other libraries.",
  });
}

$("pause").addEventListener("click", () => {
  const { name, leader } = detail;
  act("pause", { name }, `${name} was paused.`, {
    title: `Pause ${name}?`, text: leader ? leads(detail) : `Nobody leads ${name}.`, yes: "Pause", reason: true,
    note: "The leader ends its work first. Then nobody leads until somebody resumes.",
  });
});

$("resume").addEventListener("click", () => {
  const { name, paused } = detail;
  act("resume", { name, token: paused.token }, `${name} was resumed.`, {
    title: `Resume ${name}?`, text: `${name} was paused by ${paused.by}: ${paused.reason}`, yes: "Resume",
    note: "The next in line leads then.",
  });
});
