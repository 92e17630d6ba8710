// The page of a training step (run_page.cpp tells what the data hold).

function runCards(data) {
  const { result, memory } = data;
  const { advice, uncertainty } = result;
  const range = uncertainty
    ? `${milliseconds(uncertainty.fastest_s)} to ${milliseconds(uncertainty.slowest_s)} over what is assumed` : "";
  const exposed = result.exposed_communication_s;
  const cards = [
    card("Step time", milliseconds(result.step_time_s), "ms", range),
    card("Throughput", fixed(result.images_per_s, 1), "samples/s", `batch ${data.batch}`),
    card("Exposed communication", milliseconds(exposed), "ms", `${percentWords(exposed / result.step_time_s)} of the step`),
    card("Computing", milliseconds(result.compute_s), "ms", `${percentWords(result.compute_s / result.step_time_s)} of the step`),
  ];
  if (advice && advice.one_npu_step_s) {
    cards.push(card("Efficiency", percentWords(advice.one_npu_step_s / result.step_time_s), "",
                    `of ${result.npus} × one NPU, ${milliseconds(advice.one_npu_step_s)} ms`));
  }
  const peak = result.hbm_peak_bytes;
  const unit = memoryUnit(peak);
  cards.push(card("HBM peak", fixed(peak / unit.size, 2), unit.name,
                  `${percentWords(peak / memory.capacity)} of ${memoryWords(memory.capacity)}` +
                  (peak > memory.peak ? `, on NPU ${result.hbm_peak_rank}` : "")));
  return cards;
}

const kindWords = {
  forward: "forward", backward: "backward", check: "gradient checks", update: "update", allreduce: "communication",
  flag: "overflow flag", copy: "copy", reduce: "transfer that reduces", local_reduce: "reduction on a core",
  post: "notify", wait: "wait for notify",
};

// A lane of the data as timeline.js takes it.
function timelineLane(lane, timeline) {
  const kind = lane.kind.map((number) => timeline.kinds[number]);
  const text = (i) => {
    if (!lane.tasks) return timeline.names[lane.label[i]];
    return lane.label[i] < 0 ? kindWords[kind[i]] : `${kindWords[kind[i]]}, NPU ${lane.label[i]}`;
  };
  const facts = (i) => {
    const seconds = lane.duration[i] / 1e9;
    const rows = [["what", kindWords[kind[i]]], ["from", `${milliseconds(lane.start[i] / 1e9)} ms`],
                  ["to", `${milliseconds((lane.start[i] + lane.duration[i]) / 1e9)} ms`], ["takes", timeWords(seconds)]];
    if (lane.bytes && lane.bytes[i] > 0) {
      rows.push(["bytes", byteWords(lane.bytes[i])]);
      if (seconds > 0) rows.push(["at", rateWords(lane.bytes[i] / seconds)]);
    }
    return rows;
  };
  return { ...lane, group: `NPU ${lane.rank}`, kind, text, facts };
}

// The step in three words, above the lanes of the NPUs. Passes of several micro-batches take turns.
function phaseLane(timeline, rank, passes) {
  const dates = Object.fromEntries(timeline.points);
  const backward = passes > 1 ? dates.fp_start : dates.bp_start;
  const phases = [["forward", "Forward (FP)", dates.fp_start, backward],
                  ["backward", passes > 1 ? `FP and BP of ${passes} micro-batches` : "Backward (BP)", backward, dates.bp_end],
                  ["allreduce", "Hang-over", dates.bp_end, dates.iteration_end]].filter(([, , from, to]) => to > from);
  return {
    group: "Step", name: `NPU ${rank}`, tasks: false,
    start: phases.map((phase) => phase[2]),
    duration: phases.map((phase) => phase[3] - phase[2]),
    kind: phases.map((phase) => phase[0]),
    text: (i) => phases[i][1],
    facts: (i) => [["from", `${milliseconds(phases[i][2] / 1e9)} ms`], ["to", `${milliseconds(phases[i][3] / 1e9)} ms`],
                   ["takes", timeWords((phases[i][3] - phases[i][2]) / 1e9)]],
  };
}

function timelineSection(data) {
  const { timeline } = data;
  const lanes = [phaseLane(timeline, data.rank, data.result.parallel?.micro_batches ?? 1), ...timeline.lanes.map((lane) => timelineLane(lane, timeline))];
  const used = new Set(timeline.lanes.flatMap((lane) => lane.kind));
  const kinds = timeline.kinds.filter((_, number) => used.has(number)).map((kind) => [kind, kindWords[kind]]);
  const groups = [...new Set(timeline.lanes.map((lane) => `NPU ${lane.rank}`))];
  const view = new TimelineView(lanes, timeline.points, "Timeline of the last training step");
  const rows = timeline.points.map(([name, date]) => [name, milliseconds(date / 1e9)]);
  const left = timeline.tasks_left_out;
  return section("timeline", "Timeline of the last step", 
    ...timelineTools(view, groups, kinds, timeline.lanes.some((lane) => lane.tasks)),
    groups.length < data.result.npus
      ? element("p", { class: "quiet" }, `${groups.length} of ${data.result.npus} NPUs; --trace-ranks chooses others.`) : null,
    left > 0 ? element("p", { class: "quiet" }, `Tasks inside allreduces are left out for ${left} of them: there are too many.`) : null,
    folded("Trace points as a table", table(`NPU ${data.rank}, since fp_start`, [{ title: "Point" }, { title: "ms", number: true }], rows)));
}

const manySegments = 20;  // whose table is folded

function splitSection(result) {
  const columns = [{ title: "AR", number: true }, { title: "Gradients" }, { title: "Parameters" }, { title: "Tensors", number: true },
                   { title: "Bytes", number: true }, { title: "Share", number: true }, { title: "Ready ms", number: true },
                   { title: "Start ms", number: true }, { title: "End ms", number: true }, { title: "Hidden", number: true },
                   { title: "algbw GB/s", number: true }, { title: "busbw GB/s", number: true }, { title: "Algorithm" },
                   { title: "Limited by" }];
  const runs = (ranges) => ranges.map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(", ");
  const rows = result.segments.map((one, i) => [
    i + 1, `${one.first}–${one.last}`, runs(one.parameters.slice(0, 4)) + (one.parameters.length > 4 ? ", …" : ""),
    one.tensors, byteWords(one.bytes), percentWords(one.share, 2),
    milliseconds(one.ready_s), milliseconds(one.start_s), milliseconds(one.end_s), percentWords(one.hidden),
    fixed(one.algbw_Bps / 1e9, 2), fixed(one.busbw_Bps / 1e9, 2), one.algorithm, one.limited_by].map(String));
  return section("split", "Gradient split", element("p", { class: "quiet" },
                 "Gradients in production order, parameters in forward order; dates since fp_start."),
                 ...(rows.length <= manySegments ? [table(result.segment_log, columns, rows), gradientChart(result)]
                   : [gradientChart(result), folded(`All ${rows.length} segments`, table(result.segment_log, columns, rows))]));
}

// Bytes of gradients that are there, and that have been reduced, over the step; as they are computed, whatever is sent of
// them.
function gradientChart(result) {
  const ready = [[0, 0]];
  let sum = 0;
  for (const gradient of [...result.gradients].sort((a, b) => a.ready_s - b.ready_s)) {
    sum += gradient.bytes;
    ready.push([gradient.ready_s * 1e3, sum / 1e6]);
  }
  const end = result.trace.iteration_end_s * 1e3;
  ready.push([end, sum / 1e6]);
  // Reductions may overlap each other.
  const reductions = result.segments.map((one) => ({ start: one.start_s, end: one.end_s,
    bytes: result.gradients.slice(one.first, one.last + 1).reduce((bytes, gradient) => bytes + gradient.bytes, 0) }));
  const rates = reductions.flatMap(({ start, end: last, bytes }) => {  // by how many bytes per second the rate changes
    const rate = bytes / Math.max(last - start, 1e-12);
    return [[start, rate], [last, -rate]];
  }).sort((a, b) => a[0] - b[0]);
  const reduced = [[0, 0]];
  let [bytes, rate, before] = [0, 0, 0];
  for (const [date, change] of rates) {
    bytes += rate * (date - before);
    reduced.push([date * 1e3, bytes / 1e6]);
    [rate, before] = [rate + change, date];
  }
  reduced.push([end, sum / 1e6]);
  return element("div", {}, element("h3", {}, "Gradients ready and reduced"), lineChart(
    "Bytes of gradients ready and reduced over time",
    [{ name: "ready", points: ready, stepped: true, colour: "backward" },
     { name: "reduced (mean rate of each allreduce)", points: reduced, plain: true, colour: "allreduce" }],
    axis("ms since fp_start", short, { min: 0, max: end }), axis("MB", short, { min: 0 }),
    { x: (ms) => `${fixed(ms, 3)} ms`, y: (megabytes) => `${fixed(megabytes, 2)} MB` }));
}

function comparisonSection(data) {
  const { result } = data;
  const advice = result.advice;
  if (!advice) return null;
  const mode = data.parallel ? "on" : "off";
  const entries = [[`this run (hcom_parallel ${mode})`, result.step_time_s]];
  const add = (name, time) => { if (time) entries.push([name, time]); };
  add(`hcom_parallel ${advice.other_hcom_parallel}`, advice.other_hcom_parallel_step_s);
  for (const trial of advice.fusions ?? []) add(`fusion ${trial.fusion}`, trial.step_time_s);
  for (const trial of advice.trials ?? []) {
    const split = trial.fusion_index ? `fusion index ${trial.fusion_index.join(", ")}`
      : `split after ${gradientList(trial.split_by_idx)}`;
    add(`${data.parallel ? "" : "hcom_parallel on, "}${split}`, trial.step_time_s);
  }
  for (const { assumption, fast_s: fast, slow_s: slow } of result.uncertainty ? result.uncertainty.effects : []) {
    add(`${assumption}: the fast end`, fast);
    add(`${assumption}: the slow end`, slow);
  }
  add("one NPU alone", advice.one_npu_step_s);
  const scenario = advice.scenario > 0 ? `Scenario ${advice.scenario} of the split guide` : "No scenario of the split guide";
  const sentence = advice.fusions ? "Rules of fusion, the best first, and hcom_parallel turned."
    : `${scenario}${data.parallel ? "" : " with hcom_parallel on"}: ${advice.sentence}.`;
  const columns = [{ title: "Run" }, { title: "Step ms", number: true }, { title: "Change", number: true }];
  return section("comparison", "What else was simulated",
    element("p", {}, sentence),
    barChart("Step time of every run", entries.map(([name]) => name),
             [{ name: "step", values: entries.map(([, time]) => time * 1e3) }], axis("step time, ms", short, { min: 0 }),
             (ms) => `${fixed(ms, 3)} ms`),
    folded("As a table", table("", columns, entries.map(([name, time], i) =>
      [name, milliseconds(time), i === 0 ? "" : changeWords(time, result.step_time_s)]))));
}

function memorySection(data) {
  const { memory, result } = data;
  const unit = memoryUnit(memory.peak);
  const inUnit = (bytes) => bytes / unit.size;
  const end = result.trace.iteration_end_s * 1e3;
  const fixedParts = Object.entries(memory.fixed).filter(([, bytes]) => bytes > 0);
  const colours = ["forward", "check", "update", "flag"];
  let below = 0;
  const series = fixedParts.map(([name, bytes], i) => {
    below += bytes;
    return { name, points: [[0, inUnit(below)], [end, inUnit(below)]], plain: true, fill: i === 0 ? "origin" : "-1",
             colour: colours[i] };
  });
  const dates = memory.date.map((date) => Math.max(0, date * 1e3));
  if (dates.length) {
    const points = memory.activations.map((bytes, i) => [dates[i], inUnit(below + bytes)]);
    points.push([end, inUnit(below)]);
    series.push({ name: "activations", points, stepped: true, fill: series.length ? "-1" : "origin", colour: "backward" });
  }
  const most = Math.max(below, ...memory.activations.map((bytes) => below + bytes));
  if (most > 0.4 * memory.capacity) {
    series.push({ name: "capacity", points: [[0, inUnit(memory.capacity)], [end, inUnit(memory.capacity)]], dashed: true, plain: true,
                  colour: "local_reduce" });
  }
  const rows = [...fixedParts, ["activations, at the peak", most - below], ["peak", most], ["capacity", memory.capacity]];
  return section("memory", result.hbm_peak_bytes > memory.peak ? `HBM of NPU ${data.rank} over the step` : "HBM of an NPU over the step",
    element("p", { class: "quiet" }, dates.length
      ? `Peak ${memoryWords(memory.peak)} of ${memoryWords(memory.capacity)}. Weights, gradients, optimizer state and buffers are there for the whole step; activations come and go with the kernels.`
      : `Peak ${memoryWords(memory.peak)} of ${memoryWords(memory.capacity)}. A profile tells nothing of activations.`),
    lineChart("HBM in use over the step", series, axis("ms since fp_start", short, { min: 0, max: end }),
              axis(unit.name, short, { min: 0 }),
              { x: (ms) => `${fixed(ms, 3)} ms`, y: (value) => `up to ${fixed(value, 3)} ${unit.name}` }),
    folded("As a table", table("", [{ title: "Purpose" }, { title: unit.name, number: true }],
                               rows.map(([name, bytes]) => [name, fixed(inUnit(bytes), 3)]))));
}

// Loss and accuracy of --numerics.
function numericsSection(numerics) {
  if (!numerics) return null;
  const points = (key) => numerics.iterations.map((one) => [one.iteration, one[key]]);
  const chart = (name, key, words, ...others) => lineChart(`${name} over iterations`,
    [{ name, points: points(key) }, ...others],
    axis("iteration", short), axis(name, short), { x: (iteration) => `iteration ${iteration}`, y: words });
  const plain = numerics.iterations.some((one) => one.plain_loss !== undefined);
  const beside = plain ? [{ name: "loss without compression", points: points("plain_loss") }] : [];
  return section("numerics", "Real gradients",
    element("div", { class: "columns" }, chart("loss", "loss", (value) => fixed(value, 5), ...beside),
            chart("gradient norm", "gradient_norm", short)));
}

function runSections(data) {
  const { result } = data;
  const many = result.npus > 1;
  return {
    lead: `${data.set_up.find(([name]) => name === "Segments")[1]}, hcom_parallel ${data.parallel ? "on" : "off"}, ${result.platform}`,
    cards: runCards(data),
    sections: [backTestSection(result.profile), timelineSection(data), many ? splitSection(result) : null, comparisonSection(data), memorySection(data),
               linksSection(data), explanationSection(result.explain), numericsSection(result.numerics),
               setUpSection(data), notesSection(data)],
  };
}
