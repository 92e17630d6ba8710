// Sections that pages of all kinds have.

function setUpSection(data, ...more) {
  const entries = Array.isArray(data.set_up) ? data.set_up : Object.entries(data.set_up);
  return section("set-up", "Set-up", pairs(entries), ...more);
}

function notesSection(data) {
  const notes = data.result.notes || [];
  const unmodelled = data.result.not_modelled || [];
  const parts = [];
  if (data.assumptions) {
    parts.push(table("What the speeds rest on", [{ title: "Figure" }, { title: "Source" }, { title: "Kind" }],
                     data.assumptions));
  }
  if (unmodelled.length) parts.push(element("p", {}, `Set but not modelled, without effect: ${unmodelled.join(", ")}`));
  if (notes.length) parts.push(element("h3", {}, "Notes"), element("ul", {}, ...notes.map((note) => element("li", {}, note))));
  parts.push(folded("The figures as the command prints them", element("pre", {}, data.text)));
  return section("assumptions", "Assumptions and notes", ...parts);
}

function reproduceSection(data) {
  return section("reproduce", "Reproduce", element("p", { class: "quiet" },
                 `hcclsim ${data.version}; the same command gives the same report, byte for byte.`),
                 copied(data.command));
}

// What --explain tells: why each algorithm, and what the others would cost.
function explanationSection(explained) {
  if (!explained) return null;
  const columns = [{ title: "Algorithm" }, { title: "Formula" }, { title: "By formula", number: true },
                   { title: "Simulated", number: true }];
  const words = (time) => (time === null || time === undefined ? "–" : timeWords(time));
  return section("explanation", "Why these algorithms", ...explained.flatMap((one) => [
    element("h3", {}, `${one.title}, ${sizeWords(one.bytes)}`),
    element("p", {}, one.rule),
    table("", columns, one.algorithms.map((algorithm) => ({
      class: algorithm.chosen ? "best" : null,
      cells: [algorithm.algorithm + (algorithm.chosen ? " (chosen)" : ""), algorithm.formula || "–",
              words(algorithm.formula_s), words(algorithm.simulated_s)],
    }))),
    one.refused.length ? folded(`${one.refused.length} that cannot work here`,
                                pairs(one.refused.map(({ algorithm, reason }) => [algorithm, reason]))) : null,
  ]));
}

// What --profile measured beside what was simulated with it.
function backTestSection(profile) {
  if (!profile) return null;
  const time = (seconds) => (seconds === null ? "–" : milliseconds(seconds));
  const rows = profile.back_test;
  const columns = [{ title: "Phase" }, { title: "Measured ms", number: true }, { title: "Simulated ms", number: true },
                   { title: "Error", number: true }];
  const { kernels } = profile;
  if (rows.length === 0) {
    return section("back-test", "Back-test: measured and simulated",
      element("p", {}, "Nothing was measured that the simulation has a time for."),
      ...profile.notes.map((note) => element("p", {}, note)));
  }
  return section("back-test", "Back-test: measured and simulated",
    barChart("Measured and simulated time of every phase", rows.map((row) => row.phase),
             [{ name: "measured", values: rows.map((row) => row.measured_s && row.measured_s * 1e3), colour: "post" },
              { name: "simulated", values: rows.map((row) => row.simulated_s && row.simulated_s * 1e3), colour: "forward" }],
             axis("ms", short, { min: 0 }), (ms) => `${fixed(ms, 3)} ms`),
    table("", columns, rows.map((row) => [row.phase, time(row.measured_s), time(row.simulated_s),
                                         row.error === null ? "–" : changeWords(1 + row.error, 1)])),
    element("p", { class: "quiet" }, `From ${profile.files.map((one) => `${one.file} (${one.kind})`).join(", ")}.`),
    kernels ? element("p", {}, `${kernels.replaced} kernels as measured, ${kernels.modelled.length} as modelled, ` +
                               `${kernels.unmatched.length} measured ones that the model has not.`) : null,
    ...profile.notes.map((note) => element("p", {}, note)));
}

// A timeline with its buttons. ranks: [[value, text] …] for the choice of lanes; kinds: colours of the legend.
function timelineTools(view, groups, kinds, hasTasks) {
  const shown = { group: "all", tasks: false };
  const apply = () => view.show((lane) => (shown.group === "all" || lane.group === shown.group) &&
                                          (shown.tasks || !lane.tasks));
  const button = (text, label, act) => element("button", { type: "button", "aria-label": label, onclick: act }, text);
  const tasks = element("input", { type: "checkbox", onchange: () => {
    shown.tasks = tasks.checked;
    apply();
  } });
  const tools = element("div", { class: "tools" });
  if (groups.length > 1) {
    tools.append(choice("Show", [["all", "all lanes"], ...groups.map((group) => [group, group])], (value) => {
      shown.group = value;
      apply();
    }));
  }
  if (hasTasks) tools.append(element("label", {}, tasks, "tasks inside allreduces"));
  tools.append(element("span", { class: "push" },
    button("−", "Zoom out", () => view.zoom(1 / 0.6)), " ", button("+", "Zoom in", () => view.zoom(0.6)), " ",
    button("◀", "Earlier", () => view.pan(-0.25)), " ", button("▶", "Later", () => view.pan(0.25)), " ",
    button("Whole step", "Whole step", () => view.whole())));
  const keys = element("p", { class: "quiet keys", id: "timeline-keys" }, "Drag to move, ",
    element("kbd", {}, "Ctrl"), " + wheel or double click to zoom. Keys: ", element("kbd", {}, "←"), " ",
    element("kbd", {}, "→"), " next bar, ", element("kbd", {}, "↑"), " ", element("kbd", {}, "↓"), " next lane, ",
    element("kbd", {}, "+"), " ", element("kbd", {}, "−"), " zoom, ", element("kbd", {}, "Enter"), " zoom to the bar, ",
    element("kbd", {}, "Home"), " whole step.");
  const colours = element("div");
  const recolour = () => colours.replaceChildren(legend(kinds.map(([kind, text]) => [colour(kind), text])));
  theme.follow(colours, recolour);
  recolour();
  return [tools, colours, view.box, view.selection, keys];
}
