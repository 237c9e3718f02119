// What all scripts do with elements and texts.

export const $ = (id) => document.getElementById(id);

// set changes an element only if that makes a difference: a screen reader says what has changed.
export const set = (e, text) => { if (e.textContent !== text) e.textContent = text; };

export const plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
