// The page of a collective over sizes (collective_page.cpp tells what the data hold).

function collectiveSections(data) {
  const { result } = data;
  const rows = result.rows.filter((row) => row.bytes > 0);
  const points = (words) => rows.map((row) => [row.bytes, words(row)]).filter(([, value]) => value !== null && value > 0);
  const last = rows.at(-1);
  const fastest = rows.reduce((a, b) => (b.busbw_Bps > a.busbw_Bps ? b : a), rows[0]);
  const cards = rows.length === 0 ? [] : [
    card("Largest size", timeWords(last.time_s), "", sizeWords(last.bytes)),
    card("Smallest size", timeWords(rows[0].time_s), "", sizeWords(rows[0].bytes)),
    card("Best bus bandwidth", fixed(fastest.busbw_Bps / 1e9, 2), "GB/s", `at ${sizeWords(fastest.bytes)}`),
    card("Algorithm", last.algorithm, "", `at ${sizeWords(last.bytes)}, limited by ${last.limited_by}`),
  ];
  const size = axis("size", sizeWords, { ...powersOfTwo, min: rows.at(0)?.bytes, max: last?.bytes });
  const columns = [{ title: "Size", number: true }, { title: "Bytes", number: true }, { title: "Time", number: true },
                   { title: "algbw GB/s", number: true }, { title: "busbw GB/s", number: true }, { title: "Algorithm" },
                   { title: "Formula", number: true }, { title: "Bound", number: true }, { title: "Limited by" },
                   { title: "Check" }];
  const tip = { x: sizeWords };
  return {
    lead: `${data.set_up["Type"]}, ${data.set_up["Launch"]} mode, ${result.platform}`,
    cards,
    sections: [
      section("time", "Time over size", lineChart("Time over size, both logarithmic",
        [{ name: "simulated", points: points((row) => row.time_s), colour: "forward" },
         { name: "HCCL's formula", points: points((row) => row.formula_s), dashed: true, colour: "allreduce" },
         { name: "lower bound", points: points((row) => row.bound_s), dashed: true, colour: "post" }],
        size, axis("time", timeWords, powersOfTen), { ...tip, y: timeWords }, { tall: true, mode: "index" })),
      section("bandwidth", "Bandwidth over size", lineChart("Bandwidth over size",
        [{ name: "algbw", points: points((row) => row.algbw_Bps / 1e9), colour: "forward" },
         { name: "busbw", points: points((row) => row.busbw_Bps / 1e9), colour: "backward" }],
        size, axis("GB/s", short, { min: 0 }), { ...tip, y: (speed) => `${fixed(speed, 3)} GB/s` }, { tall: true, mode: "index" })),
      section("sizes", "All sizes", table("", columns, result.rows.map((row) => [
        sizeWords(row.bytes), String(row.bytes), timeWords(row.time_s), fixed(row.algbw_Bps / 1e9, 3),
        fixed(row.busbw_Bps / 1e9, 3), row.algorithm, row.formula_s === null ? "–" : timeWords(row.formula_s),
        timeWords(row.bound_s), row.limited_by, row.check]))),
      result.links ? section("links", "Busiest links",
        element("p", { class: "quiet" }, `During one call of ${byteWords(result.rows.at(-1).bytes)} alone: ${result.links.length} of ` +
                `${result.links_used} links that carried something.`), linkTable(result.links)) : null,
      explanationSection(result.explain), setUpSection(data), notesSection(data)],
  };
}
