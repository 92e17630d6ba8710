// Light or dark as the reader's system has it, or as the button in the bar says; paper is always light. What is drawn
// on a canvas takes its colours from the style sheet and is drawn again when they change.

const theme = {
  dark: window.matchMedia("(prefers-color-scheme: dark)"),
  chosen: null,      // "light" or "dark" by the button; null: the system's
  printing: false,
  listeners: [],
  colours: new Map(),  // of the style sheet, as far as they were asked for

  apply() {
    const name = this.printing ? "light" : this.chosen || (this.dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = name;
    this.colours.clear();
    for (const { listener } of this.listeners) listener();
  },

  // Calls the listener whenever colours change, as long as the element is part of the page.
  follow(owner, listener) { this.listeners.push({ owner, listener }); },
  // Forgets those whose elements are within this one, which is about to be filled anew.
  forget(box) { this.listeners = this.listeners.filter(({ owner }) => !box.contains(owner)); },

  start() {
    this.dark.addEventListener("change", () => this.apply());
    const paper = window.matchMedia("print");
    const print = (on) => {
      if (this.printing === on) return;
      this.printing = on;
      this.apply();
    };
    paper.addEventListener("change", () => print(paper.matches));
    window.addEventListener("beforeprint", () => print(true));
    window.addEventListener("afterprint", () => print(false));
    this.printing = paper.matches;
    this.apply();
  },

  toggle() {
    this.chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    this.apply();
  },
};

// A colour of the style sheet: colour("forward").
function colour(name) {
  if (!theme.colours.has(name)) {
    theme.colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return theme.colours.get(name);
}

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function withOpacity(hex, opacity) {
  return `rgb(${channels(hex).join(" ")} / ${opacity})`;
}

// Between two colours, share 0 … 1.
function mixed(from, to, share) {
  const [a, b] = [channels(from), channels(to)];
  return `#${a.map((value, i) => Math.round(value + (b[i] - value) * share).toString(16).padStart(2, "0")).join("")}`;
}

// Black or white, whichever can be read on a colour.
function inkOn(hex) {
  const [red, green, blue] = channels(hex).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return light > 0.179 ? "#000000" : "#ffffff";
}
