// The page of a gradient split (tune_page.cpp tells what the data hold).

function tuneTimeline(data) {
  const { result, segments } = data;
  const end = Math.max(result.backward_end_s, result.best.finish_s);
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
      more: [["bytes", byteWords(one.bytes)], ["begins when", one.waits_for_gradient ? `gradient ${one.last} is ready` : "the stream is free"]],
    }))),
  ];
  const view = new TimelineView(lanes, [["fp_start", 0], ["bp_end", nanoseconds(result.backward_end_s)], ["end", nanoseconds(end)]],
                                "Timeline of the best split");
  return timelineTools(view, [], [["backward", "computing"], ["allreduce", "allreduce"]], false);
}

// Last gradients of segments, shortened if there are many.
function gradientList(cuts) {
  return cuts ? `${cuts.slice(0, 10).join(", ")}${cuts.length > 10 ? ", …" : ""}` : "–";
}

function tuneCards(result) {
  const { best } = result;
  return [
    card("Best split", String(best.segments), best.segments === 1 ? "segment" : "segments", `last gradients ${gradientList(best.by_idx)}`),
    card("Last allreduce ends", milliseconds(best.finish_s), "ms", `${milliseconds(best.exposed_s)} ms behind the backward pass`),
    card("No split before", milliseconds(best.bound_s), "ms", `gap ${percentWords(best.gap, 2)}`),
    card("Gradients", String(result.gradients), "", byteWords(result.bytes)),
  ];
}

function tuneStrategies(result) {
  const columns = [{ title: "Split" }, { title: "Segments", number: true }, { title: "Ends ms", number: true },
                   { title: "Exposed ms", number: true }, { title: "Simulated end ms", number: true },
                   { title: "Simulated step ms", number: true }, { title: "Last gradients" }];
  const all = [...result.strategies, ...result.by_segments.map((one) => ({
    ...one, name: `best of at most ${one.k}`, exposed_s: one.finish_s - result.backward_end_s }))];
  const time = (seconds) => (seconds === null ? "–" : milliseconds(seconds));
  const earlier = result.earlier_end ? element("p", { class: "notice" },
    `Simulated, "${result.earlier_end.name}" ends earlier than the best by the cost, at ` +
    `${milliseconds(result.earlier_end.simulated_finish_s)} ms.`) : null;
  const shorter = result.shorter_step ? element("p", { class: "notice" },
    `Counting the updates, which each follow their allreduce, the shortest simulated step is that of "${result.shorter_step.name}": ` +
    `${milliseconds(result.shorter_step.simulated_step_s)} ms.`) : null;
  const least = Math.min(...all.map((one) => one.finish_s));
  const millis = (key) => result.strategies.map((one) => (one[key] === null ? null : one[key] * 1e3));
  return section("strategies", "What others would choose",
    barChart("End of communication and step time of every strategy", result.strategies.map((one) => one.name),
             [{ name: "end of the last allreduce, by the cost", values: millis("finish_s"), colour: "forward" },
              { name: "the same, simulated", values: millis("simulated_finish_s"), colour: "allreduce" },
              { name: "step, simulated", values: millis("simulated_step_s"), colour: "backward" }],
             axis("ms since fp_start", short), (ms) => `${fixed(ms, 3)} ms`),
    table(`No allreduces on one link end before ${milliseconds(result.best.bound_s)} ms`, columns, all.map((one) => ({
      class: one.finish_s === least ? "best" : null,
      cells: [one.name, one.by_idx ? String(one.by_idx.length) : "–", time(one.finish_s), time(one.exposed_s),
              time(one.simulated_finish_s), time(one.simulated_step_s), gradientList(one.by_idx)] }))),
    earlier, shorter);
}

// How far the best split stays the best: under jitter, at other bandwidths, with other ready times.
function tuneRobustness(result) {
  const { jitter, bandwidth_range: bandwidth, sensitivity } = result;
  const parts = [];
  if (jitter) {
    parts.push(element("p", {}, `With a jitter of ${percentWords(jitter.jitter)} no split ends earlier in ` +
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
  const points = (key) => result.by_segments.filter((one) => one[key] !== null).map((one) => [one.k, one[key] * 1e3]);
  const most = result.by_segments.length;
  const bound = [[1, result.best.bound_s * 1e3], [most, result.best.bound_s * 1e3]];
  return section("segments", "How many segments", lineChart("End of communication over the number of segments",
    [{ name: "end of the last allreduce, by the cost", points: points("finish_s"), colour: "forward" },
     { name: "the same, simulated", points: points("simulated_finish_s"), colour: "allreduce" },
     { name: "step, simulated", points: points("simulated_step_s"), colour: "backward" },
     { name: "no split before", points: bound, dashed: true, colour: "post" }],
    axis("segments at most", short, { ticks: { stepSize: 1 } }), axis("ms since fp_start", short),
    { x: (k) => `at most ${k}`, y: (ms) => `${fixed(ms, 3)} ms` }, { mode: "index" }));
}

function tuneSections(data) {
  const { result } = data;
  const { best, cost } = result;
  const lines = [`set_split_strategy_by_idx([${best.by_idx.join(",")}])`];
  if (best.by_size) lines.push(`set_split_strategy_by_size([${best.by_size.join(",")}])`);
  lines.push(`all_reduce_fusion_config=[${best.all_reduce_fusion_config.join(",")}]`);
  const speed = cost.beta_s_per_byte > 0 ? ` + n / ${rateWords(1 / cost.beta_s_per_byte)}` : "";
  return {
    lead: `The split whose last allreduce ends first, on ${result.platform}`,
    cards: tuneCards(result),
    sections: [
      backTestSection(result.profile),
      section("best", "The best split", ...lines.map(copied), ...tuneTimeline(data),
        element("p", {}, `An allreduce of n bytes costs ${timeWords(cost.alpha_s)}${speed}, with an error of at most ${percentWords(cost.largest_error)}. Premises: ready times do not depend on the split; segments are runs of gradients in production order; one stream; allreduces cost what is said here.`)),
      tuneStrategies(result), tuneBySegments(result), tuneRobustness(result), setUpSection(data), notesSection(data)],
  };
}
