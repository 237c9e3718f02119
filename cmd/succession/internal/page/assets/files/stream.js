// What the server tells, and since when it is not heard from.

import { $, set } from "./text.js";

// health says at the top how that is.
export function health(text, mood) {
  set($("health"), text);
  $("health").className = `health ${mood}`;
}

export class Stream {
  // address() is where the events come from. on has a function for each event, by its name, which takes what that says. turned is called
  // when the server is not heard from any more, and when it is again. connect begins.
  constructor(address, on, turned) {
    this.address = address;
    this.on = { ...on, alive: (ms) => { this.ahead = ms - Date.now(); } };
    this.turned = turned;
    this.source = null;
    this.heard = Date.now();
    this.deaf = 0;  // since when the server is not heard from, by its clock; 0 while it is
    this.ahead = 0; // how far its clock is ahead, in milliseconds
    setInterval(() => this.listen(), 500);
    // A page that nobody sees asks for nothing.
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) { this.heard = Date.now(); this.connect(); return; }
      this.source?.close();
      this.source = null;
      health("paused", "");
    });
  }

  // now returns what time it is, by the server's clock.
  now() { return Date.now() + this.ahead; }

  get open() { return this.source !== null; }

  connect() {
    this.source?.close();
    clearTimeout(this.retry);
    const source = this.source = new EventSource(this.address());
    for (const [event, f] of Object.entries(this.on)) {
      source.addEventListener(event, (e) => {
        const was = this.deaf;
        this.heard = Date.now();
        this.deaf = 0;
        f(JSON.parse(e.data));
        if (was) this.turned();
      });
    }
    source.onerror = () => {
      this.deafen();
      if (source.readyState !== EventSource.CLOSED) return; // it tries again by itself
      clearTimeout(this.retry);
      this.retry = setTimeout(async () => {
        const page = await fetch("./").catch(() => null);
        if (page && page.status === 401) location.reload();
        else if (page && page.status === 503) { health(await page.text(), "bad"); this.retry = setTimeout(() => this.connect(), 10000); }
        else this.connect();
      }, 3000);
    };
  }

  // deafen notes that the server is not heard from.
  deafen() {
    if (this.deaf) return;
    this.deaf = this.heard + this.ahead;
    this.turned();
  }

  // listen notes it if the server says nothing, which it does every second.
  listen() {
    if (document.hidden || !this.open) return;
    if (Date.now() - this.heard > 3000) this.deafen();
    if (Date.now() - this.heard > 15000) { this.heard = Date.now() - 3001; this.connect(); }
  }
}
