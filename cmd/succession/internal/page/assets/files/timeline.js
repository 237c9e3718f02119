// Who led when, as a picture: a row for each candidate that led, a bar for each term with its token,
// the times in which nobody led, and those in which nothing was seen.

const space = "http://www.w3.org/2000/svg";
const exact = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const row = 34, bar = 15, axis = 22, most = 12;

export const clock = (ms) => {
  const t = new Date(ms), time = t.toLocaleTimeString([], { ...exact, second: "2-digit" });
  return t.toDateString() === new Date().toDateString() ? time : `${t.toLocaleDateString()} ${time}`;
};

export const lasting = (ms) => {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
};

// draw draws the terms of a detail into box, up to now, over the last range milliseconds; 0 is all. Nothing is known since
// lost, if that is not 0. It returns how many candidates there was no room for, and how many milliseconds a pixel is.
export function draw(box, detail, now, range, lost) {
  const last = lost || now; // up to which terms are drawn
  const terms = detail.terms || [], gaps = (detail.gaps || []).filter((g) => !lost || g.from < lost);
  if (lost) gaps.push({ kind: "not reached", from: lost });
  const known = Math.min(detail.since, ...terms.map((t) => t.from)); // leaders may have written down what was before
  const from = Math.max(known, range ? now - range : 0), span = Math.max(now - from, 1000);
  const width = Math.max(box.clientWidth, 200);
  const x = (t) => ((Math.min(Math.max(t, from), now) - from) / span) * width;

  const inside = terms.filter((t) => (t.to || last) >= from);
  const ids = [...new Set(inside.map((t) => t.id))];
  const shown = ids.slice(-most);
  const vacant = vacancies(terms, detail.since, last).filter((v) => v.to > from);
  const rows = shown.length + (vacant.length ? 1 : 0);
  const base = rows * row;

  const svg = document.createElementNS(space, "svg");
  const put = (name, attributes, text, parent = svg) => {
    const e = parent.appendChild(document.createElementNS(space, name));
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  svg.setAttribute("role", "img");
  svg.setAttribute("height", base + axis);
  svg.setAttribute("viewBox", `0 0 ${width} ${base + axis}`);
  svg.setAttribute("aria-label", `${inside.length} terms of ${ids.length} candidates since ${clock(from)}; the table of terms below has them`);
  const hatch = put("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
  put("line", { class: "hatch", x1: 0, y1: 0, x2: 0, y2: 6 }, undefined, hatch);

  const step = tick(span, width);
  for (let t = Math.ceil(from / step) * step; t <= now; t += step) {
    put("line", { class: "grid", x1: x(t), y1: 0, x2: x(t), y2: base + 4 });
    const label = new Date(t).toLocaleTimeString([], step < 60000 ? { ...exact, second: "2-digit" } : exact);
    const end = x(t) > width - 30 ? "end" : x(t) < 30 ? "start" : "middle";
    put("text", { class: "time", x: x(t), y: base + 17, "text-anchor": end }, label);
  }
  for (const g of gaps) {
    const x1 = x(g.from), x2 = x(g.to || now);
    if ((g.to || now) < from) continue;
    const mark = put("g", {});
    put("title", {}, `${g.kind}, from ${clock(g.from)}${g.to ? ` to ${clock(g.to)}` : ""}`, mark);
    put("rect", { class: "gap", x: x1, y: 0, width: Math.max(2, x2 - x1), height: base }, undefined, mark);
    put("rect", { fill: "url(#hatch)", x: x1, y: 0, width: Math.max(2, x2 - x1), height: base, opacity: 0.6 }, undefined, mark);
    if (x2 - x1 > 70) put("text", { x: x1 + 4, y: base - 4 }, g.kind, mark);
  }
  if (detail.since > from) {
    const mark = put("g", {});
    put("title", {}, `this page has looked since ${clock(detail.since)}; what was before, leaders have written down`, mark);
    put("line", { class: "since", x1: x(detail.since), y1: 0, x2: x(detail.since), y2: base + 4 }, undefined, mark);
  }
  const line = (i, name, kind) => {
    const y = i * row;
    put("line", { class: "row", x1: 0, y1: y + 16 + bar / 2, x2: width, y2: y + 16 + bar / 2 });
    put("text", { class: kind, x: 0, y: y + 12 }, short(name, width));
    return y + 16;
  };
  shown.forEach((id, i) => {
    const y = line(i, id, "name");
    for (const t of inside) {
      if (t.id !== id) continue;
      const x1 = x(t.from), w = Math.max(2, x(t.to || last) - x1);
      const mark = put("g", {});
      put("title", {}, `${t.id}, token ${t.token}, from ${t.before ? "before " : ""}${clock(t.from)}${t.to ? ` ${t.late ? "by" : "to"} ${clock(t.to)}` : ""}${t.why ? `: ${t.why}` : ""}`, mark);
      put("rect", { class: t.told ? "term told" : "term", x: x1, y, width: w, height: bar, rx: Math.min(3, w / 2) }, undefined, mark);
      if (w >= 8 * t.token.length + 8) put("text", { class: "token", x: x1 + w / 2, y: y + 12 }, t.token, mark);
    }
  });
  if (vacant.length) {
    const y = line(shown.length, "nobody", "vacant");
    for (const v of vacant) {
      const mark = put("g", {});
      put("title", {}, `nobody led, from ${clock(v.from)}${v.to < last ? ` to ${clock(v.to)}` : ""}`, mark);
      put("rect", { class: "vacancy", x: x(v.from), y: y + 4, width: Math.max(2, x(v.to) - x(v.from)), height: bar - 8 }, undefined, mark);
    }
  }
  box.replaceChildren(svg);
  return { hidden: ids.length - shown.length, pixel: span / width };
}

// vacancies returns when nobody led.
function vacancies(terms, since, now) {
  const out = [];
  let end = since;
  for (const t of terms) {
    if (t.from > end + 1) out.push({ from: end, to: t.from });
    end = Math.max(end, t.to || now);
  }
  if (end < now) out.push({ from: end, to: now });
  return out;
}

// tick returns the time between two lines of the grid, in milliseconds.
function tick(span, width) {
  const steps = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400];
  const room = Math.max(2, Math.floor(width / 90));
  return 1000 * (steps.find((s) => span / (1000 * s) <= room) || 86400 * Math.ceil(span / 86400000 / room));
}

const short = (s, width) => {
  const most = Math.floor(width / 7.5);
  return s.length > most ? `${s.slice(0, most - 1)}…` : s;
};
