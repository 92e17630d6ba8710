// The page of an MSJob (job_page.cpp tells what the data hold).

const podStages = [["unscheduled", "post"], ["creating", "update"], ["waiting", "allreduce"], ["training", "forward"],
                   ["backing_off", "check"], ["unreachable", "flag"], ["succeeded", "backward"], ["failed", "local_reduce"]];
const mostPodsDrawn = 60;

// Lying bars from begin to end: one for every stage that a pod was in.
function podTimeline(pods, end) {
  const drawn = pods.slice(0, mostPodsDrawn);
  const spans = (pod, stage) => pod.stages.flatMap((one, number) => {
    const until = pod.stages[number + 1]?.at_s ?? pod.deleted_s ?? end;
    return one.stage === stage && until > one.at_s ? [{ x: [one.at_s, until], y: pod.label }] : [];
  });
  const datasets = podStages.map(([stage, name]) => ({
    label: stage.replace("_", " "),
    data: drawn.flatMap((pod) => spans(pod, stage)),
    grouped: false,
    maxBarThickness: 18,
    backgroundColor: themed(name),
  })).filter((one) => one.data.length > 0);
  const tooltip = { callbacks: { label: (item) => `${item.dataset.label}: ${item.raw.x.map((date) => `${fixed(date, 3)} s`).join(" to ")}` } };
  const box = drawnChart("What every pod was at over time", {
    type: "bar",
    data: { labels: drawn.map((pod) => pod.label), datasets },
    options: { indexAxis: "y", scales: { x: axis("s", short, { min: 0 }), y: { ticks: { autoSkip: false } } },
               plugins: { tooltip } },
  });
  box.style.height = `${80 + drawn.length * 24}px`;
  return box;
}

// Losses over simulated time, a line for each run of steps without a break: of all workers together, or of each that
// trains by itself. Steps that were lost and their repetition are two lines.
function jobLosses(training) {
  const colours = ["forward", "allreduce", "update", "backward", "check", "flag"];
  const runs = {};
  const lines = training.filter((run) => run.numbers.length > 0).map((run, number) => {
    const name = run.worker || "all workers";
    runs[name] = (runs[name] ?? 0) + 1;
    return { name: runs[name] === 1 ? name : `${name}, run ${runs[name]}`, colour: colours[number % colours.length],
             points: run.numbers.map((step) => [step.end_s, step.loss]) };
  });
  return lineChart("Loss over simulated time", lines, axis("s", short), axis("loss", short), { x: short, y: short },
    { tall: true });
}

function jobSections(data) {
  const { result } = data;
  const date = (seconds) => (seconds === null ? "–" : fixed(seconds, 3));
  // A pod that was created again has the name of the one before it.
  const seen = {};
  const pods = result.pods.map((pod) => {
    seen[pod.name] = (seen[pod.name] ?? 0) + 1;
    return { ...pod, label: seen[pod.name] === 1 ? pod.name : `${pod.name} (${seen[pod.name]})` };
  });
  const cards = [
    card("State", result.state, "", result.ending.replace("_", " ")),
    card("End", date(result.end_s), "s", "since the creation of the job"),
    card("Pods", String(pods.length), "", `${result.counters.restarted} restarts of the job`),
    card("Training", String(result.steps), "steps", result.model ?? "their time as given"),
  ];
  return {
    lead: result.sentence,
    cards,
    sections: [
      section("timeline", "Timeline", podTimeline(pods, result.end_s),
        pods.length > mostPodsDrawn ? element("p", { class: "quiet" }, `The first ${mostPodsDrawn} of ${pods.length} pods.`) : null),
      section("pods", "Pods", table("", [{ title: "Pod" }, { title: "Status" }, { title: "Server" }, { title: "NPUs" },
                                         { title: "Restarts", number: true }, { title: "Exit code", number: true }],
        pods.map((pod) => [pod.label, pod.deleted_s === null ? pod.status : `deleted at ${date(pod.deleted_s)} s (was ${pod.status})`, pod.node ?? "–", pod.npus.join(", "), String(pod.restarts),
                           pod.exit_code === null ? "–" : String(pod.exit_code)]))),
      section("conditions", "Conditions", table("", [{ title: "Time s", number: true }, { title: "Condition" }],
        result.conditions.map((one) => [date(one.at_s), one.type]))),
      section("training", "Training", table("", [{ title: "By" }, { title: "Start s", number: true }, { title: "End s", number: true },
                                                 { title: "From step", number: true }, { title: "Done", number: true },
                                                 { title: "Step ms", number: true }, { title: "Ended" }],
        result.training.map((run) => [run.worker || "all", date(run.start_s), date(run.end_s), String(run.first_step),
                                      String(run.steps), milliseconds(run.step_time_s), run.ended]))),
      result.numerics ? section("loss", "Loss", jobLosses(result.training)) : null,
      section("events", "Events", table("", [{ title: "First s", number: true }, { title: "Last s", number: true },
                                             { title: "Count", number: true }, { title: "Type" }, { title: "Reason" },
                                             { title: "Object" }, { title: "Message" }],
        result.events.map((event) => [date(event.first_s), date(event.last_s), String(event.count), event.type, event.reason,
                                      event.object, event.message]))),
      setUpSection(data), notesSection(data)],
  };
}
