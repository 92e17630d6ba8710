// Curves and bars by Chart.js. Each is an image with a description for whoever does not see it, and a table holds the
// same figures.

Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;

const seriesColours = ["forward", "allreduce", "backward", "check", "update", "local_reduce", "flag", "post"];

// Colours are functions, so that they follow the theme whenever a chart is drawn again.
const themed = (name) => () => colour(name);
const seriesColour = (series, number) => themed(series.colour || seriesColours[number % seriesColours.length]);

// `config`: of Chart.js. `tall`: the chart needs more height.
function drawnChart(description, config, tall = false) {
  const canvas = element("canvas", { role: "img", "aria-label": description });
  const box = element("div", { class: tall ? "chart tall" : "chart" }, canvas);
  const { plugins, scales } = config.options;
  for (const scale of Object.values(scales)) {
    scale.grid = { color: themed("line"), borderColor: themed("line") };
    scale.ticks = { ...scale.ticks, color: themed("quiet") };
    scale.title = { ...scale.title, color: themed("quiet") };
  }
  plugins.legend = { display: config.data.datasets.length > 1, labels: { ...plugins.legend?.labels, color: themed("text") } };
  plugins.tooltip = { ...plugins.tooltip, backgroundColor: themed("surface"), titleColor: themed("text"),
                      bodyColor: themed("text"), borderColor: themed("line"), borderWidth: 1 };
  let chart = null;
  theme.follow(box, () => {
    chart?.resize();
    chart?.update("none");
  });
  requestAnimationFrame(() => { chart = new Chart(canvas, config); });  // when the page has its width
  return box;
}

function axis(title, words, more = {}) {
  const { ticks, ...rest } = more;
  return { title: { display: true, text: title }, ticks: { callback: words, maxRotation: 0, autoSkipPadding: 14, includeBounds: false, ...ticks },
           ...rest };
}

// Powers of two on a logarithmic axis of sizes.
const powersOfTwo = {
  type: "logarithmic",
  afterBuildTicks(scale) {
    const first = Math.ceil(Math.log2(scale.min));
    const last = Math.floor(Math.log2(scale.max));
    const step = Math.max(1, Math.ceil((last - first) / 9));
    scale.ticks = [];
    for (let power = first; power <= last; power += step) scale.ticks.push({ value: 2 ** power });
  },
};

// Powers of ten, and so many multiples of them that there are three ticks: all of them are too many to read.
const powersOfTen = {
  type: "logarithmic",
  afterBuildTicks(scale) {
    const all = scale.ticks;
    const shown = (multiples) => all.filter(({ value }) => {
      const multiple = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
      return multiples.some((one) => Math.abs(multiple - one) < 1e-6);
    });
    scale.ticks = [[1], [1, 3], [1, 2, 5]].map(shown).find((ticks) => ticks.length >= 3) ?? all;
  },
};

// In a legend a curve is a line, dashed like it.
const lineMarks = {
  usePointStyle: true,
  generateLabels: (chart) => Chart.defaults.plugins.legend.labels.generateLabels(chart).map((label) =>
    ({ ...label, fontColor: colour("text"), pointStyle: "line", lineDash: chart.data.datasets[label.datasetIndex].borderDash, lineWidth: 2.5 })),
};

// series: [{name, points: [[x, y] …], dashed, stepped, plain: without marks, fill, colour}]; x and y: axes; words of x and
// y in the tip.
function lineChart(description, series, x, y, tip, options = {}) {
  const datasets = series.map((one, number) => ({
    label: one.name,
    data: one.points.map(([px, py]) => ({ x: px, y: py })),
    borderWidth: 2,
    borderDash: one.dashed ? [6, 4] : [],
    pointRadius: one.points.length > 60 || one.stepped || one.plain ? 0 : 2.5,
    pointHitRadius: 8,
    pointStyle: "circle",
    stepped: one.stepped || false,
    fill: one.fill || false,
    tension: 0,
    clip: 4,  // marks at the edge are whole
    borderColor: seriesColour(one, number),
    pointBackgroundColor: seriesColour(one, number),
    backgroundColor: () => withOpacity(seriesColour(one, number)(), one.fill ? 0.55 : 1),
  }));
  const tooltip = { callbacks: { title: (items) => (items.length ? tip.x(items[0].parsed.x) : ""),
                                 label: (item) => `${item.dataset.label}: ${tip.y(item.parsed.y)}` } };
  return drawnChart(description, {
    type: "line",
    data: { datasets },
    options: { parsing: false, interaction: { mode: options.mode || "nearest", axis: "x", intersect: false },
               scales: { x: { type: "linear", ...x }, y },
               plugins: { tooltip, legend: { labels: lineMarks } } },
  }, options.tall);
}

// A bar's label, in two lines where half of the chart is too narrow for one.
function labelLines(number) {
  const letters = Math.max(12, Math.floor(this.chart.width / 15));
  return wrapped(this.getLabelForValue(number), letters);
}

// Lying bars: labels [text …], series [{name, values, colour}], null: no bar.
function barChart(description, labels, series, x, words) {
  const datasets = series.map((one, number) => ({
    label: one.name,
    data: one.values,
    borderRadius: 3,
    maxBarThickness: 18,
    backgroundColor: seriesColour(one, number),
  }));
  const tooltip = { callbacks: { label: (item) => `${item.dataset.label}: ${words(item.parsed.x)}` } };
  const box = drawnChart(description, {
    type: "bar",
    data: { labels, datasets },
    options: { indexAxis: "y", scales: { x, y: { ticks: { autoSkip: false, callback: labelLines } } }, plugins: { tooltip } },
  });
  box.style.height = `${80 + labels.length * Math.max(24, 4 + 11 * series.length)}px`;
  return box;
}
