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
    this.heard = Date.now(); // when the server was heard from last
    this.asked = 0; // since when it should have been, if that is later: when it was asked anew after a pause
    this.deaf = 0;  // since when the server is not heard from, by its clock; 0 while it is
    this.ahead = 0; // how far its clock is ahead, in milliseconds
    setInterval(() => this.listen(), 500);
    document.addEventListener("visibilitychange", () => {
      this.asked = Date.now();
      this.connect();
      if (document.hidden) health("paused", "");
      else if (this.deaf) this.turned();
    });
  }

  // now returns what time it is, by the server's clock.
  now() { return Date.now() + this.ahead; }

  get open() { return this.source !== null; }

  // connect begins, unless nobody sees the page, which asks for nothing then.
  connect() {
    this.source?.close();
    this.source = null;
    clearTimeout(this.retry);
    if (document.hidden) return;
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
    const silent = Date.now() - Math.max(this.heard, this.asked);
    if (silent > 3000) this.deafen();
    if (silent > 15000) { this.asked = Date.now(); this.connect(); }
  }
}
