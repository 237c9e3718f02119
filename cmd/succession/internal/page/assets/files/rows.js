// A long list as a table. Elements are made only for the rows that are in sight, and kept while they
// are: so a thousand rows cost what thirty do.

const height = 36; // of a row, as in the style sheet
const head = 33;   // of the row with the titles
const more = 8;    // how many rows are made beyond those in sight, on each side

export class Rows {
  // columns have a title and text(row), and may have is ("number", "code"), hide ("widest", "wide",
  // "narrow": where there is no room for it), width or size (a class of the style sheet), href(row), mood(row),
  // and act(row, i): what its button does, as { label, run }, or nothing. key(row, i) tells rows apart. If sort is given,
  // each title is a button that calls it with the title. A row with "of" stands for the rows of a group, which follow if it is
  // "open"; they have "group".
  constructor(label, columns, key, sort) {
    this.columns = columns;
    this.key = key;
    this.rows = [];
    this.made = new Map(); // from keys to elements
    this.links = columns.some((c) => c.href);
    this.acts = columns.find((c) => c.act);
    this.active = null;    // the key of the row that the Tab key reaches, if rows are links or have buttons
    this.chosen = null;

    const make = (name, parent) => parent.appendChild(document.createElement(name));
    this.element = document.createElement("div");
    this.element.className = "scroll";
    this.element.setAttribute("role", "region");
    this.element.setAttribute("aria-label", label);
    this.element.tabIndex = this.links ? -1 : 0;
    this.window = make("div", this.element);
    this.table = make("table", this.window);
    const group = make("colgroup", this.table);
    const titles = make("tr", make("thead", this.table));
    titles.setAttribute("aria-rowindex", 1);
    for (const c of columns) {
      const col = make("col", group);
      col.className = `${c.hide || ""} ${c.size || ""}`;
      if (c.width) col.style.width = c.width;
      const th = make("th", titles);
      th.scope = "col";
      th.className = `${c.is === "number" ? "number" : ""} ${c.hide || ""}`;
      if (sort) {
        const button = make("button", th);
        button.type = "button";
        button.textContent = c.title;
        button.onclick = () => sort(c.title);
      } else th.textContent = c.title;
    }
    this.body = make("tbody", this.table);
    this.none = make("p", this.element);
    this.none.className = "none";
    this.element.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.soon()).observe(this.element);
    if (this.links || this.acts) this.element.addEventListener("keydown", (e) => this.pressed(e));
  }

  // sorted shows by which column, given by its title, the rows are in order; how is "ascending" or "descending".
  sorted(by, how) {
    this.columns.forEach((c, i) => {
      const th = this.table.rows[0].cells[i];
      if (c.title === by) th.setAttribute("aria-sort", how);
      else th.removeAttribute("aria-sort");
    });
  }

  // show makes these the rows. empty is what to say where there are none.
  show(rows, empty) {
    this.rows = rows;
    this.none.textContent = empty;
    this.none.hidden = rows.length > 0;
    this.window.hidden = rows.length === 0;
    this.table.setAttribute("aria-rowcount", rows.length + 1);
    this.draw();
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  // draw makes the elements of the rows in sight, and drops the others.
  draw() {
    const n = this.rows.length;
    const seen = this.element.clientHeight || 600;
    const from = Math.max(0, Math.min(n, Math.floor(this.element.scrollTop / height)) - more);
    const to = Math.min(n, Math.ceil((this.element.scrollTop + seen) / height) + more);
    this.window.style.paddingTop = `${from * height}px`;
    this.window.style.paddingBottom = `${(n - to) * height}px`;

    const keys = [];
    for (let i = from; i < to; i++) keys.push(this.key(this.rows[i], i));
    const wanted = new Set(keys);
    let lost = false;
    for (const [key, tr] of this.made) {
      if (wanted.has(key)) continue;
      lost ||= tr.contains(document.activeElement);
      tr.remove();
      this.made.delete(key);
    }
    const able = keys.filter((_, j) => this.reaches(from + j));
    const reach = able.includes(this.active) ? this.active
      : able.find((key) => keys.indexOf(key) >= (from ? more : 0)) ?? able.at(-1);
    let at = this.body.firstChild;
    keys.forEach((key, j) => {
      let tr = this.made.get(key);
      if (!tr) {
        tr = this.make();
        this.made.set(key, tr);
      }
      this.fill(tr, this.rows[from + j], from + j);
      tr.classList.toggle("chosen", key === this.chosen);
      const link = tr.querySelector("a, button");
      if (link) link.tabIndex = key === reach ? 0 : -1;
      if (this.links) {
        if (key === this.chosen) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
      if (tr === at) at = at.nextSibling;
      else this.body.insertBefore(tr, at);
    });
    if (lost) this.element.focus({ preventScroll: true });
  }

  // reaches reports whether the keyboard has something to reach in a row.
  reaches(i) { return this.links || Boolean(this.acts?.act(this.rows[i], i)); }

  make() {
    const tr = document.createElement("tr");
    for (const c of this.columns) {
      const td = tr.appendChild(document.createElement("td"));
      td.className = `${c.is || ""} ${c.hide || ""}`;
      if (c.href) td.appendChild(document.createElement("a"));
      if (c.mood) td.appendChild(document.createElement("span"));
      if (c.act) td.appendChild(document.createElement("button")).type = "button";
    }
    return tr;
  }

  fill(tr, row, i) {
    tr.setAttribute("aria-rowindex", i + 2);
    tr.classList.toggle("in", Boolean(row.group));
    this.columns.forEach((c, j) => {
      const td = tr.children[j];
      const at = td.firstElementChild || td;
      const text = c.text(row, i);
      if (at.textContent !== text) {
        at.textContent = text;
        td.title = text.length > 12 ? text : "";
      }
      if (c.href) {
        at.setAttribute("href", c.href(row));
        if (row.of) at.setAttribute("aria-expanded", row.open);
        else at.removeAttribute("aria-expanded");
      }
      if (c.act) this.able(at, c.act(row, i));
      if (c.mood) at.className = `mood ${c.mood(row)}`;
    });
  }

  // able gives a button what it does, or hides it.
  able(button, what) {
    if (!what && button === document.activeElement) this.element.focus({ preventScroll: true });
    button.hidden = !what;
    button.onclick = what ? what.run : null;
    if (what) button.setAttribute("aria-label", what.label);
  }

  // reveal scrolls to a row, and has the keyboard there.
  reveal(i) {
    if (this.rows.length === 0) return;
    i = Math.max(0, Math.min(this.rows.length - 1, i));
    const top = i * height, room = this.element.clientHeight - head;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + height > this.element.scrollTop + room) this.element.scrollTop = top + height - room;
    this.active = this.key(this.rows[i], i);
    this.draw();
    this.made.get(this.active)?.querySelector("a, button")?.focus({ preventScroll: true });
  }

  pressed(e) {
    if (e.altKey || e.ctrlKey || e.metaKey || e.shiftKey || !this.links && e.target === this.element) return; // it scrolls
    const page = Math.max(1, Math.floor((this.element.clientHeight - head) / height) - 1);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[e.key];
    if (by === undefined) return;
    e.preventDefault();
    const [key] = [...this.made].find(([, tr]) => tr.contains(document.activeElement)) || [this.active];
    const able = [...this.rows.keys()].filter((i) => this.reaches(i));
    const now = able.findIndex((i) => this.key(this.rows[i], i) === key);
    this.reveal(able[now < 0 ? 0 : Math.max(0, Math.min(able.length - 1, now + by))]);
  }
}
