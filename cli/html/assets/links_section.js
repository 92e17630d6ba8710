// The links of a step: when they are busy, what they carry and for whom (link_data.hpp tells what the data hold).

// Loads of fewer, longer intervals: means over `together` of them.
function joined(loads, together) {
  const means = [];
  for (let at = 0; at < loads.length; at += together) {
    const part = loads.slice(at, at + together);
    means.push(part.reduce((sum, load) => sum + load, 0) / part.length);
  }
  return means;
}

// What a link carried, by purpose: the largest shares, "allreduce1 96.5 %".
function shareWords(link) {
  const stages = link.shares.some((share) => share.stage > 0);
  const words = link.shares.slice(0, 4).map((share) =>
    `${share.purpose}${stages ? ` of stage ${share.stage}` : ""} ${percentWords(share.share)}`);
  if (link.shares.length > 4) words.push(`${link.shares.length - 4} others`);
  return words.join(", ");
}

// links: as `--links` prints them.
function linkTable(links) {
  const columns = [{ title: "Link" }, { title: "Kind" }, { title: "From" }, { title: "To" }, { title: "Bytes", number: true },
                   { title: "Capacity", number: true }, { title: "Busy", number: true }, { title: "Utilisation", number: true },
                   { title: "While busy", number: true }, { title: "Transfers at once", number: true }, { title: "For" }];
  return table("", columns, links.map((link) => [
    link.name, link.kind, link.from, link.to, byteWords(link.bytes), rateWords(link.capacity_Bps), timeWords(link.busy_s),
    percentWords(link.utilisation), percentWords(link.utilisation_while_busy), String(link.most_transfers), shareWords(link)]));
}

// All links by kind, or one of those that are listed, as curves.
function linkCurves(links, intervals) {
  const interval = links.interval_s * 1e3;
  const curve = (loads) => [...loads.map((load, i) => [i * interval, load * 100]), [intervals * interval, 0]];
  const curves = (chosen) => {
    const one = links.links.find((link) => link.name === chosen);
    return one ? [{ name: `${one.name}, ${one.kind}`, points: curve(one.load), stepped: true }]
      : links.kinds.flatMap((kind, i) => [
        { name: `${kind.kind}, busiest link`, points: curve(kind.busiest), stepped: true, colour: seriesColours[i] },
        { name: `${kind.kind}, mean`, points: curve(kind.mean), stepped: true, dashed: true, colour: seriesColours[i] }]);
  };
  const chart = (chosen) => lineChart("Utilisation of links over the step", curves(chosen),
    axis("ms since fp_start", short, { min: 0, max: intervals * interval }),
    axis("% of capacity", short, { min: 0, suggestedMax: 100 }),
    { x: (ms) => `${fixed(ms, 3)} to ${fixed(ms + interval, 3)} ms`, y: (share) => `${fixed(share, 1)} %` });
  const picture = element("div", {}, chart(""));
  const tools = element("div", { class: "tools" }, choice("Link", [["", "all, by kind"], ...links.links.map(({ name }) => [name, name])],
    (chosen) => {
      theme.forget(picture);
      picture.replaceChildren(chart(chosen));
    }));
  return [tools, picture];
}

function linksSection(data) {
  const { links } = data;
  if (links.kinds.length === 0) return null;
  const interval = links.interval_s * 1e3;
  const intervals = links.kinds[0].mean.length;
  const columns = [{ title: "Kind" }, { title: "Links used", number: true }, { title: "Capacity", number: true },
                   { title: "Bytes in a step", number: true }, { title: "Mean over the step", number: true },
                   { title: "Busiest link" }, { title: "Its mean over the step", number: true }];
  const rows = links.kinds.map((kind) => [
    kind.kind, String(kind.links), rateWords(kind.capacity_Bps), byteWords(kind.bytes),
    percentWords(joined(kind.mean, intervals)[0]), kind.busiest_link, percentWords(kind.utilisation)]);
  const coarse = (most) => {
    const together = Math.ceil(intervals / most);
    return { together, loads: links.links.map((link) => joined(link.load, together)) };
  };
  const drawn = coarse(100);
  const told = coarse(20);
  const begins = told.loads[0].map((_, i) => fixed(i * told.together * interval, 2));
  const listed = `${links.links.length} of ${links.links_used} links that carried something`;
  return section("links", "Link utilisation",
    element("p", { class: "quiet" },
      `What a link carried in an interval over what it could have carried: the means of ${intervals} intervals of ` +
      `${timeWords(links.interval_s)}, from the transfers of the simulation.`),
    ...linkCurves(links, intervals), table("", columns, rows),
    element("h3", {}, `The busiest links over time: ${listed}`),
    timeMap("Load of the busiest links over the step", links.links.map(({ name }) => name), drawn.loads,
            drawn.together * interval, (r) => `for ${shareWords(links.links[r])}`),
    folded("The same as a table", heatMap(
      `% of capacity in intervals of ${timeWords(links.interval_s * told.together)}, which begin at the ms that stand above`,
      "ms since fp_start", links.links.map((link) => link.name), begins, (r, c) => told.loads[r][c],
      (share) => fixed(share * 100, 0))),
    folded("What the busiest links carry, and for whom", linkTable(links.links)));
}
