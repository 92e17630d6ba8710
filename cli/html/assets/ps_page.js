// The page of training with parameter servers (ps_page.cpp tells what the data hold).

function psSections(data) {
  const { result } = data;
  const servers = result.nodes.filter((node) => node.name.startsWith("server"));
  const workers = [...new Set(result.steps.map((step) => step.worker))].sort((a, b) => a - b);
  const stepsOf = (worker) => result.steps.filter((step) => step.worker === worker);
  const mean = (values) => (values.length === 0 ? 0 : values.reduce((a, b) => a + b, 0) / values.length);
  const load = (node, direction) => Math.max(0, ...node.links.filter((link) => link.direction === direction)
    .map((link) => 100 * link.utilisation));
  const megabytes = (bytes) => fixed(bytes / 1e6, 3);
  const byAllreduce = result.allreduce_step_time_s;
  const cards = [
    card("Step", milliseconds(result.step_time_s), "ms", result.protocol),
    card("Throughput", fixed(result.samples_per_s, 1), "samples/s", `${result.workers} workers, ${result.servers} servers`),
    byAllreduce === null ? null : card("Step by allreduce", milliseconds(byAllreduce), "ms", "the same workers without servers"),
    card("On servers", megabytes(result.bytes_on_servers), "MB", `${result.parameters_on_servers} parameters`),
  ].filter((one) => one !== null);
  const numerics = result.numerics;
  const losses = [];
  for (const step of numerics ? numerics.steps : []) (losses[step.step] ??= []).push(step.loss);
  return {
    lead: `${result.model}, batch ${result.batch} per worker, ${result.platform}`,
    cards,
    sections: [
      servers.length === 0 ? null : section("servers", "Servers",
        barChart("Utilisation of the busiest link of every server", servers.map((node) => node.name),
                 [{ name: "in", values: servers.map((node) => load(node, "in")), colour: "forward" },
                  { name: "out", values: servers.map((node) => load(node, "out")), colour: "backward" }],
                 axis("%", short, { min: 0 }), (percent) => `${fixed(percent, 1)} %`),
        table("", [{ title: "Server" }, { title: "Host" }, { title: "Holds MB", number: true },
                   { title: "Pushes MB", number: true }, { title: "Pulls MB", number: true }, { title: "Busy ms", number: true }],
              servers.map((node) => [node.name, node.host, megabytes(node.placed_bytes), megabytes(node.received_bytes.push),
                                     megabytes(node.sent_bytes.pull), milliseconds(node.busy_s)]))),
      workers.length === 0 ? null : section("workers", "Workers",
        barChart("Mean step of every worker", workers.map((worker) => `worker ${worker}`),
                 [{ name: "passes", values: workers.map((worker) => 1e3 * mean(stepsOf(worker).map((step) => step.computed_s - step.start_s))),
                    colour: "forward" },
                  { name: "until the last pull", values: workers.map((worker) => 1e3 * mean(stepsOf(worker).map((step) => step.end_s - step.computed_s))),
                    colour: "allreduce" }],
                 axis("ms", short, { min: 0 }), (ms) => `${fixed(ms, 3)} ms`)),
      result.staleness.length === 0 ? null : section("staleness", "Staleness",
        barChart("Pushes by updates of others since the last pull", result.staleness.map((_, updates) => String(updates)),
                 [{ name: "pushes", values: result.staleness, colour: "forward" }], axis("pushes", short, { min: 0 }), short)),
      !numerics ? null : section("loss", "Loss",
        lineChart("Mean loss of the workers over steps",
          [{ name: "parameter servers", points: losses.map((all, step) => [step + 1, mean(all)]), colour: "forward" },
           { name: "allreduce", points: numerics.allreduce_losses.map((loss, step) => [step + 1, loss]), dashed: true, colour: "allreduce" }],
          axis("step", short), axis("loss", short), { x: short, y: short }, { tall: true, mode: "index" })),
      section("events", "Events",
        table("", [{ title: "Time s", number: true }, { title: "Node" }, { title: "Event" }, { title: "State" }],
              result.events.map((event) => [fixed(event.time_s, 6), event.node, event.event, event.state]))),
      setUpSection(data), notesSection(data)],
  };
}
