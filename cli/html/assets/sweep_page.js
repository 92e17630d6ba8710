// The page of a sweep (sweep_page.cpp tells what the data hold): one figure of its points over one or two of what was
// varied, the rest held at chosen values.

const fewRows = 15;
const mostRows = 500;
const mostColumns = 10;  // of the map, if its rows are fewer

function metricWords(metric, value) {
  const words = { s: timeWords, Bps: rateWords, bytes: memoryWords }[metric.unit] || short;
  return value === null ? "–" : words(value);
}

// Points by words: {status, inputs: {axis: value}, values: {metric: number}, error, stale: why it is, if it is; works: its kind
// of work by metric}: figures of one kind compare.
function sweepPoints(data) {
  return data.points.map(([status, places, figures, error, stale], number) => ({
    status,
    inputs: Object.fromEntries(data.axes.map((axis, i) => [axis.name, axis.values[places[i]]])),
    values: Object.fromEntries(data.metrics.map((metric, i) => [metric.key, figures[i]])),
    error,
    stale,
    works: Object.fromEntries(data.metrics.map((metric) => [metric.key, metric.works[number]])),
  }));
}

class SweepExplorer {
  // best: the point whose values are held at first.
  constructor(data, points, best) {
    this.axes = data.axes;
    this.metrics = data.metrics;
    this.points = new Map(points.map((point) => [this.keyOf((axis) => point.inputs[axis.name]), point]));
    this.metric = data.metrics[0];
    // Numbers make the better x axis; what has most values comes first.
    const order = [...data.axes].sort((a, b) => (b.numbers !== null) - (a.numbers !== null) || b.values.length - a.values.length);
    this.x = order[0];
    this.y = order[1] || null;
    this.held = new Map(data.axes.map((axis) => [axis.name, best.inputs[axis.name]]));
    this.tools = element("div", { class: "tools" });
    this.picture = element("div", {});
    this.show();
  }

  keyOf(value) { return JSON.stringify(this.axes.map(value)); }

  // The point with these values of x and y and the held ones of all other axes.
  pointAt(x, y) {
    return this.points.get(this.keyOf((one) => (one === this.x ? x : one === this.y ? y : this.held.get(one.name))));
  }

  // Its figure; null if there is none.
  valueAt(x, y) { return this.pointAt(x, y)?.values[this.metric.key] ?? null; }

  show() {
    this.showTools();
    const parts = this.y === null ? [this.curves([null])] : [this.curves(this.y.values), this.map()];
    theme.forget(this.picture);
    this.picture.replaceChildren(this.caption(), ...parts.filter((part) => part !== null));
  }

  showTools() {
    const names = this.axes.map((axis) => [axis.name, axis.name]);
    const byName = (name) => this.axes.find((axis) => axis.name === name) || null;
    const select = (label, options, chosen, act) => {
      const made = choice(label, options, (value) => {
        act(value);
        this.show();
      });
      made.querySelector("select").value = chosen;
      return made;
    };
    const tools = [select("Figure", this.metrics.map((one) => [one.key, one.title]), this.metric.key,
                          (key) => { this.metric = this.metrics.find((one) => one.key === key); })];
    if (this.axes.length > 1) {
      tools.push(select("Over", names, this.x.name, (name) => {
        const chosen = byName(name);
        if (chosen === this.y) this.y = this.x;
        this.x = chosen;
      }));
      tools.push(select("For each", names.filter(([name]) => name !== this.x.name), this.y.name,
                        (name) => { this.y = byName(name); }));
    }
    for (const axis of this.axes) {
      if (axis === this.x || axis === this.y) continue;
      tools.push(select(axis.name, axis.values.map((value) => [value, value]), this.held.get(axis.name),
                        (value) => this.held.set(axis.name, value)));
    }
    this.tools.replaceChildren(...tools);
  }

  // What is shown, for paper too, where there is no choice.
  caption() {
    const held = this.axes.filter((one) => one !== this.x && one !== this.y).map((one) => `${one.name} ${this.held.get(one.name)}`);
    const each = this.y === null ? "" : `, for each ${this.y.name}`;
    return element("p", { class: "quiet shown" }, `${this.metric.title} over ${this.x.name}${each}${held.length ? `; ${held.join(", ")}` : ""}`);
  }

  // A line for each value of y; bars where x is no number.
  curves(lines) {
    const numbers = this.x.numbers;
    const most = 8;
    const shown = lines.slice(0, most);
    const name = (y) => (y === null ? this.metric.title : `${this.y.name} ${y}`);
    const description = `${this.metric.title} over ${this.x.name}`;
    const words = (value) => metricWords(this.metric, value);
    if (numbers === null) {
      return barChart(description, this.x.values,
                      shown.map((y) => ({ name: name(y), values: this.x.values.map((x) => this.valueAt(x, y)) })),
                      axis(this.metric.title, words), words);
    }
    const order = numbers.map((_, i) => i).sort((a, b) => numbers[a] - numbers[b]);
    const series = shown.map((y) => ({
      name: name(y),
      points: order.map((i) => [numbers[i], this.valueAt(this.x.values[i], y)]).filter(([, value]) => value !== null),
    }));
    const text = new Map(numbers.map((number, i) => [number, this.x.values[i]]));
    const picture = lineChart(description, series, axis(this.x.name, short, this.x.geometric ? powersOfTwo : {}), axis(this.metric.title, words),
                              { x: (number) => `${this.x.name} ${text.get(number)}`, y: words }, { tall: true, mode: "index" });
    if (lines.length <= most) return picture;
    return element("div", {}, picture,
                   element("p", { class: "quiet" }, `${most} of ${lines.length} values of ${this.y.name}; the map has all.`));
  }

  // Of the points that are shown.
  bestOfEachWork() {
    const { key, more } = this.metric;
    const best = new Map();
    for (const point of this.y.values.flatMap((y) => this.x.values.map((x) => this.pointAt(x, y)))) {
      if (!point || point.stale !== undefined || point.values[key] === null) continue;
      const other = best.get(point.works[key]);
      if (!other || (more ? point.values[key] > other.values[key] : point.values[key] < other.values[key])) best.set(point.works[key], point);
    }
    return new Set(best.values());
  }

  map() {
    const values = this.y.values.flatMap((y) => this.x.values.map((x) => this.valueAt(x, y))).filter((one) => one !== null);
    if (values.length === 0) return element("p", { class: "quiet" }, "No point here is done.");
    const best = this.bestOfEachWork();
    // What has more values than fit beside each other goes down.
    const turned = this.x.values.length > mostColumns && this.y.values.length < this.x.values.length;
    const [down, across] = turned ? [this.x, this.y] : [this.y, this.x];
    const point = (r, c) => (turned ? this.pointAt(down.values[r], across.values[c]) : this.pointAt(across.values[c], down.values[r]));
    const frames = ["", "; the best is framed"][best.size] ?? "; the best of each kind of work is framed";
    return heatMap(`${this.metric.title}: ${down.name} down, ${across.name} across${frames}`, "", down.values, across.values,
                   (r, c) => point(r, c)?.values[this.metric.key] ?? null, (one) => metricWords(this.metric, one),
                   (r, c) => best.has(point(r, c)));
  }
}

function sweepTable(data, points, caption) {
  const columns = [...data.axes.map((axis) => ({ title: axis.name })),
                   ...data.metrics.map((metric) => ({ title: metric.title, number: true }))];
  return table(caption, columns, points.map((point, i) => ({
    class: i === 0 ? "best" : null,
    cells: [...data.axes.map((axis) => point.inputs[axis.name]),
            ...data.metrics.map((metric) => metricWords(metric, point.values[metric.key]))],
  })));
}

function sweepSections(data) {
  const points = sweepPoints(data);
  const metric = data.metrics[0];
  const sign = metric && metric.more ? -1 : 1;
  const done = metric ? points.filter((point) => point.values[metric.key] !== null) : [];
  const ranked = done.filter((point) => point.stale === undefined).sort((a, b) => sign * (a.values[metric.key] - b.values[metric.key]));
  const bests = data.best.map((one) => points[one.point]);
  const best = bests[0];
  const failed = points.filter((point) => point.status === "failed");
  const cards = [card("Points done", String(done.length), `of ${points.length}`,
                      failed.length ? `${failed.length} failed` : "")];
  if (bests.length > 1) {
    cards.push(card("Kinds of work", String(bests.length), "", "each has a best point: their figures do not compare"));
  } else if (best) {
    const worst = ranked.at(-1);
    cards.push(card(`Best ${metric.title}`, metricWords(metric, best.values[metric.key]), "",
                    data.axes.map((axis) => `${axis.name} ${best.inputs[axis.name]}`).join(", ")),
               card(`Worst ${metric.title}`, metricWords(metric, worst.values[metric.key]), "",
                    data.axes.map((axis) => `${axis.name} ${worst.inputs[axis.name]}`).join(", ")));
  }
  const sections = [];
  if (best && data.axes.length) {
    const explorer = new SweepExplorer(data, points, best);
    sections.push(section("explore", "What was varied", explorer.tools, explorer.picture));
  }
  if (best) {
    const several = bests.length > 1;
    sections.push(section("best", several ? "The best point of each kind of work" : "The best points",
      copied(data.best.slice(0, mostRows).map((one) => one.command).join("\n")),
      sweepTable(data, (several ? bests : ranked).slice(0, several ? mostRows : fewRows), ""),
      several || ranked.length > fewRows ? folded("More points", sweepTable(data, ranked.slice(0, mostRows), ranked.length > mostRows
        ? `The best ${mostRows} of ${ranked.length}; 'hcclsim sweep export' has them all` : "")) : null));
  }
  if (failed.length) {
    sections.push(section("failed", "Points that failed", table("", [...data.axes.map((axis) => ({ title: axis.name })),
      { title: "Error" }], failed.slice(0, mostRows).map((point) => ({
      class: "failed", cells: [...data.axes.map((axis) => point.inputs[axis.name]), point.error] })))));
  }
  sections.push(setUpSection(data), section("assumptions", "Assumptions", element("p", {},
    "Every point is a simulation of its own, with the speeds of its platform file and what was set of them; figures are " +
    "as they were stored.", best ? " The command of the best point prints what its speeds rest on." : "")));
  return { lead: data.axes.map((axis) => `${axis.name}: ${axis.values.length} values`).join(", ") || "One point", cards, sections };
}
