// Moving in a timeline: with the mouse (drag, Ctrl + wheel, double click), with fingers, with buttons, with the keyboard.
// What is under the pointer is told in a box beside it, what is selected below the lanes, where it is read out too.

class TimelineView {
  // words(span of a lane) come from the lanes themselves; see timeline.js.
  constructor(lanes, points, description) {
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-label": description,
                                      "aria-describedby": "timeline-keys" });
    this.tip = element("div", { class: "tip", hidden: true });
    this.selection = element("div", { class: "selection", "aria-live": "polite" });
    this.drawing = new TimelineDrawing(this.canvas, lanes, points);
    this.keep = (lane) => !lane.tasks;
    this.box = element("div", { class: "timeline" }, this.canvas, this.tip);
    this.select(null);
    this.listenToMouse();
    this.listenToKeys();
    new ResizeObserver(() => this.show(this.keep)).observe(this.box);
    theme.follow(this.box, () => this.show(this.keep));
  }

  show(keep) {
    this.keep = keep;
    if (this.box.clientWidth > 0) this.drawing.show(keep);
  }

  zoom(factor, middle = null) {
    const { from, to } = this.drawing;
    const centre = middle === null ? (from + to) / 2 : middle;
    this.drawing.view(centre - (centre - from) * factor, (to - from) * factor);
  }

  pan(share) {
    const { from, to } = this.drawing;
    this.drawing.view(from + share * (to - from), to - from);
  }

  whole() { this.drawing.view(this.drawing.first, this.drawing.last - this.drawing.first); }

  zoomTo(first, last) {
    const room = Math.max((last - first) * 0.05, 50);
    this.drawing.view(first - room, last - first + 2 * room);
  }

  select(found) {
    this.drawing.selected = found;
    this.selection.replaceChildren(
      found ? this.facts(found) : element("span", { class: "quiet" }, "Nothing selected: click a bar, or use the arrow keys."));
    if (found) this.drawing.draw();
  }

  facts({ lane, span }) {
    const list = element("dl", {});
    for (const [name, value] of lane.facts(span)) {
      list.append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
    }
    return element("div", {}, element("strong", {}, `${lane.text(span)} — ${lane.group}, ${lane.name}`), list);
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  hover(event) {
    const [x, y] = this.place(event);
    const found = this.drawing.at(x, y);
    this.tip.hidden = !found;
    if (!found) return;
    this.tip.replaceChildren(this.facts(found));
    const left = x + 16 + this.tip.offsetWidth > this.box.clientWidth ? x - 12 - this.tip.offsetWidth : x + 16;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${y + 14}px`;
  }

  listenToMouse() {
    let drag = null;  // where it began, and the view then
    this.canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, from: this.drawing.from, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!drag) {
        this.hover(event);
        return;
      }
      const way = event.clientX - drag.x;
      if (Math.abs(way) < 4 && !drag.moved) return;
      drag.moved = true;
      this.tip.hidden = true;
      this.canvas.classList.add("dragged");
      const length = this.drawing.to - this.drawing.from;
      this.drawing.view(drag.from - (way / this.drawing.width) * length, length);
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) this.select(this.drawing.at(...this.place(event)));
      drag = null;
      this.canvas.classList.remove("dragged");
    });
    this.canvas.addEventListener("pointercancel", () => { drag = null; });
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("dblclick", (event) => this.zoom(0.5, this.drawing.date(this.place(event)[0])));
    this.canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        this.zoom(1.0015 ** event.deltaY, this.drawing.date(this.place(event)[0]));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        this.pan((event.deltaX || event.deltaY) / 1000);
      }
    }, { passive: false });
  }

  listenToKeys() {
    const keys = {
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      Home: () => this.whole(),
      0: () => this.whole(),
      ArrowRight: (event) => (event.shiftKey ? this.pan(0.15) : this.step(1)),
      ArrowLeft: (event) => (event.shiftKey ? this.pan(-0.15) : this.step(-1)),
      ArrowDown: () => this.changeLane(1),
      ArrowUp: () => this.changeLane(-1),
      Enter: () => {
        const { selected } = this.drawing;
        if (!selected) return;
        const start = selected.lane.start[selected.span];
        this.zoomTo(start, start + selected.lane.duration[selected.span]);
      },
      Escape: () => {
        this.select(null);
        this.drawing.draw();
      },
    };
    this.canvas.addEventListener("keydown", (event) => {
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act(event);
    });
  }

  // Selects the next span of the lane, or the one before.
  step(way) {
    const { shown, selected, from } = this.drawing;
    if (shown.length === 0) return;
    if (!selected) {
      const { lane } = shown[0];
      this.reveal({ lane, span: Math.min(this.drawing.firstEndingAfter(lane, from), lane.start.length - 1) });
      return;
    }
    const span = selected.span + way;
    if (span >= 0 && span < selected.lane.start.length) this.reveal({ lane: selected.lane, span });
  }

  // Selects what happens at the same time in the next lane.
  changeLane(way) {
    const { shown, selected } = this.drawing;
    if (!selected) {
      this.step(1);
      return;
    }
    const number = shown.findIndex(({ lane }) => lane === selected.lane) + way;
    if (number < 0 || number >= shown.length) return;
    const { lane } = shown[number];
    const date = selected.lane.start[selected.span] + selected.lane.duration[selected.span] / 2;
    this.reveal({ lane, span: Math.min(this.drawing.firstEndingAfter(lane, date), lane.start.length - 1) });
  }

  // Selects a span and moves the view to it if it is outside.
  reveal(found) {
    const { drawing } = this;
    const start = found.lane.start[found.span];
    const length = drawing.to - drawing.from;
    if (start < drawing.from || start > drawing.to) drawing.view(start - length / 2, length);
    this.select(found);
  }
}
