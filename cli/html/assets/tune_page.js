// The page of a gradient split (tune_page.cpp tells what the data hold).

function tuneTimeline(data) {
  const { result } = data;
  const segments = result.best.timeline;
  const end = Math.max(result.backward_end_s, result.best.step_s);
  const nanoseconds = (seconds) => Math.round(seconds * 1e9);
  const span = (group, name, spans) => ({
    group, name, tasks: false,
    start: spans.map((one) => nanoseconds(one.start)),
    duration: spans.map((one) => nanoseconds(one.end) - nanoseconds(one.start)),
    kind: spans.map((one) => one.kind),
    text: (i) => spans[i].text,
    facts: (i) => [["from", `${milliseconds(spans[i].start)} ms`], ["to", `${milliseconds(spans[i].end)} ms`],
                   ["takes", timeWords(spans[i].end - spans[i].start)], ...spans[i].more],
  });
  const lanes = [
    span("Step", "Computing", [{ start: 0, end: result.backward_end_s, kind: "backward", text: "Forward and backward", more: [] }]),
    span("Step", "Allreduces", segments.map((one, i) => ({
      start: one.start_s, end: one.end_s, kind: "allreduce", text: `AR${i + 1} [${one.first},${one.last}]`,
      more: [["bytes", byteWords(one.bytes)], ["begins when", one.waits_for === "gradient" ? `gradient ${one.last} is ready` : "the stream is free"],
             ["what follows its gradients ends", `${milliseconds(one.followed_until_s)} ms`]],
    }))),
  ];
  const view = new TimelineView(lanes, [["fp_start", 0], ["bp_end", nanoseconds(result.backward_end_s)], ["end", nanoseconds(end)]],
                                "Timeline of the best split");
  return timelineTools(view, [], [["backward", "computing"], ["allreduce", "allreduce"]], false);
}

// The figures of the objective: of the step, or of the end of communication.
const tuneObjectives = {
  step: { time: "step_s", simulated: "simulated_step_s", title: "Step", none: "No step below", axis: "step, ms" },
  communication: { time: "finish_s", simulated: "simulated_finish_s", title: "Last allreduce ends",
                   none: "No split before", axis: "ms since fp_start" },
};

function tuneCards(result) {
  const { best } = result;
  const objective = tuneObjectives[result.objective];
  const cards = [
    card("Best split", String(best.segments), best.segments === 1 ? "segment" : "segments", `last gradients ${gradientList(best.by_idx)}`),
    card("Step", milliseconds(best.step_s), "ms", `simulated ${milliseconds(best.simulated_step_s)} ms`),
    card("Last allreduce ends", milliseconds(best.finish_s), "ms", `${milliseconds(best.exposed_s)} ms behind the backward pass`),
  ];
  if (best.bound_s !== null) cards.push(card(objective.none, milliseconds(best.bound_s), "ms", `gap ${percentWords(best.gap, 2)}`));
  return [...cards, card("Gradients", String(result.gradients), "", byteWords(result.bytes))];
}

function tuneStrategies(result) {
  const objective = tuneObjectives[result.objective];
  const columns = [{ title: "Split" }, { title: "Segments", number: true }, { title: "Ends ms", number: true },
                   { title: "Exposed ms", number: true }, { title: "Step ms", number: true },
                   { title: "Simulated end ms", number: true }, { title: "Simulated step ms", number: true },
                   { title: "Last gradients" }];
  const all = [...result.strategies, ...result.by_segments.map((one) => ({ ...one, name: `best of at most ${one.k}` }))];
  const time = (seconds) => (seconds === null ? "–" : milliseconds(seconds));
  const preferred = result.best_by_cost.preferred ? element("p", { class: "notice" },
    `Simulated, "${result.best_by_cost.preferred}" is better than the best by the cost, ` +
    `${milliseconds(result.best[objective.simulated])} instead of ${milliseconds(result.best_by_cost[objective.simulated])} ms; ` +
    "so it is the best split here.") : null;
  const least = Math.min(...all.filter((one) => one[objective.time] !== null).map((one) => one[objective.time]));
  // Splits that differ by a few µs of many ms are told apart by what they miss: bars that begin at the bound.
  const from = result.best.bound_s ?? least;
  const missed = (key) => result.strategies.map((one) => (one[key] === null ? null : Math.max(0, one[key] - from) * 1e3));
  const origin = result.best.bound_s === null ? "the best by the cost" : "the bound";
  return section("strategies", "What others would choose",
    barChart(`${objective.title}: how much later than ${origin}, for every strategy`, result.strategies.map((one) => one.name),
             [{ name: "by the cost", values: missed(objective.time), colour: "forward" },
              { name: "simulated", values: missed(objective.simulated), colour: "backward" }],
             axis(`${objective.title}: ms later than ${origin}, ${milliseconds(from)} ms`, short, { min: 0 }), (ms) => `${fixed(ms, 3)} ms later`),
    table(result.best.bound_s === null ? "" : `${objective.none} ${milliseconds(result.best.bound_s)} ms`, columns, all.map((one) => ({
      class: one[objective.time] === least ? "best" : null,
      cells: [one.name, one.by_idx ? String(one.by_idx.length) : "–", time(one.finish_s), time(one.exposed_s), time(one.step_s),
              time(one.simulated_finish_s), time(one.simulated_step_s), gradientList(one.by_idx)] }))),
    preferred);
}

// How far the best split stays the best: under jitter, at other bandwidths, with other ready times.
function tuneRobustness(result) {
  const { jitter, bandwidth_range: bandwidth, sensitivity } = result;
  const parts = [];
  if (jitter) {
    parts.push(element("p", {}, `With a jitter of ${percentWords(jitter.jitter)} no split is better in ` +
      `${jitter.optimal} of ${jitter.draws} draws; it ends ${timeWords(jitter.mean_regret_s)} later than the best one on ` +
      `average, ${timeWords(jitter.worst_regret_s)} at worst.`));
  }
  if (bandwidth) {
    const columns = [{ title: "Factor from", number: true }, { title: "to", number: true }, { title: "Best last gradients" }];
    parts.push(table(`Bandwidth of ${bandwidth.links === "all" ? "all links" : bandwidth.links} times a factor: which split is the best`,
      columns, bandwidth.intervals.map((one) => ({
        class: one.by_idx.join() === result.best.by_idx.join() ? "best" : null,
        cells: [short(one.from), short(one.to), gradientList(one.by_idx)] }))));
    for (const [end, regret] of [["lowest", bandwidth.at_lowest], ["highest", bandwidth.at_highest]]) {
      parts.push(element("p", {}, `At the ${end} the best split ends ${timeWords(regret.regret_s)} later than that of this bandwidth.`));
    }
  }
  for (const one of sensitivity || []) {
    parts.push(element("p", {}, `With ready times in proportion to ${one.in_proportion_to} it ends ${timeWords(one.regret_s)} ` +
      `later than the best split of those times, ${gradientList(one.best_by_idx)}.`));
  }
  return parts.length ? section("robustness", "How far it stays the best", ...parts) : null;
}

function tuneBySegments(result) {
  if (result.by_segments.length === 0) return null;
  const objective = tuneObjectives[result.objective];
  const points = (key) => result.by_segments.map((one) => [one.k, one[key] * 1e3]);
  const most = result.by_segments.length;
  const bound = result.best.bound_s === null ? [] : [[1, result.best.bound_s * 1e3], [most, result.best.bound_s * 1e3]];
  return section("segments", "How many segments", lineChart(`${objective.title} over the number of segments`,
    [{ name: "by the cost", points: points(objective.time), colour: "forward" },
     { name: "simulated", points: points(objective.simulated), colour: "backward" },
     { name: "no split below", points: bound, dashed: true, colour: "post" }],
    axis("segments at most", short, { ticks: { stepSize: 1 } }), axis(objective.axis, short),
    { x: (k) => `at most ${k}`, y: (ms) => `${fixed(ms, 3)} ms` }, { mode: "index" }));
}

// What a second communication stream would give, by the cost.
function tuneStreams(result) {
  const found = result.two_links || result.shared_link;
  if (!found) return null;
  const { bound_s: bound, exact, by_idx: cuts, streams } = found;
  const finish = found.finish_s ?? found.best_found_s;
  const time = exact ? `at ${milliseconds(finish)} ms, exactly` :
    `between ${milliseconds(bound)} ms, the bound, and ${milliseconds(finish)} ms, the best found`;
  const rows = cuts.map((last, i) => [`[${i === 0 ? 0 : cuts[i - 1] + 1},${last}]`, ...(streams ? [String(streams[i])] : [])]);
  return section("streams", streams ? "Two streams on links of their own" : "Two streams on one link",
    element("p", {}, `With two communication streams the last allreduce ends ${time}; with one it ends at ` +
                     `${milliseconds(result.best.finish_s)} ms. By the cost; not simulated.`),
    table("", [{ title: "Gradients" }, ...(streams ? [{ title: "Stream" }] : [])], rows));
}

function tuneCostWords(cost) {
  if (cost.model === "affine") return "";
  if (cost.model === "aoe") return "; splits are chosen by what the vendor's tool estimates";
  return `; splits are chosen by ${cost.simulated_sizes} simulated sizes`;
}

function tuneSections(data) {
  const { result } = data;
  const { best, cost } = result;
  const lines = [];
  if (best.numbering === "production order") lines.push(`set_split_strategy_by_idx([${best.by_idx.join(",")}])`);
  if (best.by_size) lines.push(`set_split_strategy_by_size([${best.by_size.join(",")}])`);
  lines.push(`all_reduce_fusion_config=[${best.all_reduce_fusion_config.join(",")}]`);
  const speed = cost.beta_s_per_byte > 0 ? ` + n / ${rateWords(1 / cost.beta_s_per_byte)}` : "";
  return {
    lead: `${result.objective === "step" ? "The split with the shortest step" : "The split whose last allreduce ends first"}, on ${result.platform}`,
    cards: tuneCards(result),
    sections: [
      backTestSection(result.profile),
      section("best", "The best split", ...lines.map(copied), ...tuneTimeline(data),
        element("p", {}, `An allreduce of n bytes costs roughly ${timeWords(cost.alpha_s)}${speed}, with an error of up to ${percentWords(cost.largest_error)}${tuneCostWords(cost)}. Premises: ${best.premises.join("; ")}.`)),
      tuneStrategies(result), tuneBySegments(result), tuneStreams(result), tuneRobustness(result), setUpSection(data), notesSection(data)],
  };
}
