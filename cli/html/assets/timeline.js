// The lanes of a timeline on a canvas: what is drawn where. timeline_view.js lets people move in it.
//
// lane: {group, name, tasks: it is shown only with tasks, start[], duration[], kind[] (colour names), text(i), facts(i)}
// Dates are nanoseconds. Spans of a lane ascend and do not overlap.

const laneHeight = 20;
const laneGap = 3;
const groupHeight = 22;
const axisHeight = 26;
const gutter = 118;
const leastWidth = 1;  // pixels of a span that is too short to be seen

class TimelineDrawing {
  // points: [[name, date] …], marked by lines through all lanes.
  constructor(canvas, lanes, points) {
    this.canvas = canvas;
    this.lanes = lanes;
    this.points = points;
    const ends = lanes.flatMap((lane) => (lane.start.length ? [lane.start.at(-1) + lane.duration.at(-1)] : []));
    const begins = lanes.flatMap((lane) => (lane.start.length ? [lane.start[0]] : []));
    const dates = points.map(([, date]) => date);
    this.first = Math.min(...begins, ...dates);
    this.last = Math.max(...ends, ...dates);
    this.from = this.first;
    this.to = this.last;
    this.shown = [];  // {lane, top}
    this.selected = null;  // {lane, span}
  }

  // The lanes for which keep(lane) holds, below each other.
  show(keep) {
    this.shown = [];
    this.titles = [];
    let top = axisHeight;
    let group = null;
    for (const lane of this.lanes.filter(keep)) {
      if (lane.group !== group) {
        group = lane.group;
        this.titles.push({ text: group, top });
        top += groupHeight;
      }
      this.shown.push({ lane, top });
      top += laneHeight + laneGap;
    }
    this.canvas.style.height = `${top + 6}px`;
    this.draw();
  }

  get width() { return this.canvas.clientWidth - gutter - 8; }
  x(date) { return gutter + ((date - this.from) / (this.to - this.from)) * this.width; }
  date(x) { return this.from + ((x - gutter) / this.width) * (this.to - this.from); }

  // Moves the view to begin at `from` and last `length`, within what there is.
  view(from, length) {
    const whole = this.last - this.first;
    const shown = Math.min(Math.max(length, 100), whole);
    this.from = Math.min(Math.max(from, this.first), this.last - shown);
    this.to = this.from + shown;
    this.draw();
  }

  // The span at a place of the canvas: {lane, span}, or null.
  at(x, y) {
    const row = this.shown.find(({ top }) => y >= top && y < top + laneHeight);
    if (!row || x < gutter) return null;
    const { lane } = row;
    const slack = (3 / this.width) * (this.to - this.from);
    const date = this.date(x);
    const number = this.firstEndingAfter(lane, date - slack);
    if (number >= lane.start.length || lane.start[number] > date + slack) return null;
    // Of a crowd within reach, the one under the pointer.
    const next = this.firstEndingAfter(lane, date);
    const under = next < lane.start.length && lane.start[next] <= date;
    return { lane, span: under ? next : number };
  }

  firstEndingAfter(lane, date) {
    let [low, high] = [0, lane.start.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.start[middle] + lane.duration[middle] < date) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  draw() {
    const { canvas } = this;
    const scale = window.devicePixelRatio || 1;
    const height = parseInt(canvas.style.height, 10);
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(height * scale);
    canvas.dataset.from = this.from;
    canvas.dataset.to = this.to;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    pen.textBaseline = "middle";
    this.drawAxis(pen, height);
    for (const { text, top } of this.titles) {
      pen.fillStyle = colour("text");
      pen.font = pen.font.replace(/^(bold )?/, "bold ");
      pen.fillText(text, 2, top + groupHeight / 2 + 1);
      pen.font = pen.font.replace(/^bold /, "");
    }
    for (const { lane, top } of this.shown) this.drawLane(pen, lane, top);
    this.drawPoints(pen, height);
    this.drawSelection(pen);
  }

  drawAxis(pen, height) {
    const length = this.to - this.from;
    const about = (length / Math.max(2, this.width / 110));
    const power = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= about);
    pen.strokeStyle = colour("line");
    pen.fillStyle = colour("quiet");
    pen.lineWidth = 1;
    pen.textAlign = "center";
    for (let number = Math.ceil(this.from / step); number * step <= this.to; ++number) {
      const tick = number * step;
      const x = Math.round(this.x(tick)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, axisHeight - 6);
      pen.lineTo(x, height);
      pen.stroke();
      pen.fillText(this.tickWords(tick, step), x, axisHeight / 2 - 2);
    }
    pen.textAlign = "left";
  }

  tickWords(tick, step) {
    if (tick === 0) return "0";
    if (step >= 1e3) {
      const digits = Math.max(0, 6 - Math.floor(Math.log10(step)));
      return `${fixed(tick / 1e6, Math.min(digits, 3))} ms`;
    }
    return `${fixed(tick / 1e3, step >= 100 ? 1 : 3)} µs`;
  }

  drawLane(pen, lane, top) {
    pen.fillStyle = colour("quiet");
    pen.fillText(lane.name, 12, top + laneHeight / 2);
    pen.save();
    pen.beginPath();
    pen.rect(gutter, top, this.width, laneHeight);
    pen.clip();
    let covered = -Infinity;  // up to here something has been drawn: more in the same pixel would not be seen
    for (let i = this.firstEndingAfter(lane, this.from); i < lane.start.length && lane.start[i] <= this.to; ++i) {
      const left = this.x(lane.start[i]);
      const right = Math.max(this.x(lane.start[i] + lane.duration[i]), left + leastWidth);
      if (right - covered < 0.5) continue;
      covered = right;
      const hex = colour(lane.kind[i]);
      pen.fillStyle = hex;
      const gap = right - left > 6 ? 0.75 : 0;
      pen.fillRect(left, top, right - left - gap, laneHeight);
      if (right - left > 28) this.drawText(pen, lane.text(i), hex, Math.max(left, gutter), right, top);
    }
    pen.restore();
  }

  drawText(pen, text, hex, left, right, top) {
    const room = right - left - 8;
    let shown = text;
    if (pen.measureText(shown).width > room) {
      const letters = Math.floor((room / pen.measureText(shown).width) * shown.length) - 1;
      if (letters < 2) return;
      shown = `${shown.slice(0, letters)}…`;
    }
    pen.fillStyle = inkOn(hex);
    pen.fillText(shown, left + 4, top + laneHeight / 2 + 0.5);
  }

  drawPoints(pen, height) {
    pen.strokeStyle = colour("text");
    pen.globalAlpha = 0.55;
    pen.setLineDash([3, 3]);
    const inView = this.points.filter(([, date]) => date >= this.from && date <= this.to);
    // Where many allreduces would hide what is below them, their lines come with zooming in.
    const crowded = inView.length > this.width / 16;
    for (const [name, date] of inView) {
      if (crowded && name.startsWith("allreduce")) continue;
      const x = Math.round(this.x(date)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, axisHeight - 2);
      pen.lineTo(x, height);
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  drawSelection(pen) {
    if (!this.selected) return;
    const { lane, span } = this.selected;
    const row = this.shown.find((one) => one.lane === lane);
    if (!row) return;
    const left = Math.max(this.x(lane.start[span]), gutter);
    const right = Math.min(Math.max(this.x(lane.start[span] + lane.duration[span]), left + 3), gutter + this.width);
    if (right < gutter || left > gutter + this.width) return;
    pen.strokeStyle = colour("text");
    pen.lineWidth = 2;
    pen.strokeRect(left - 1, row.top - 1, right - left + 2, laneHeight + 2);
  }
}
