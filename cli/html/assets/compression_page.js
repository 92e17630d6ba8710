// The page of what gradient compression gains (compression_page.cpp tells what the data hold).

function compressionSections(data) {
  const { result } = data;
  const trials = [...result.trials].sort((a, b) => a.factor - b.factor);
  const all = result.break_even.find((one) => one.links === "all");
  const tried = (one) => `from × ${short(one.slowest.factor)} to × ${short(one.fastest.factor)}`;
  const verdict = (one) => (one.at ? `pays ${one.slowest.saved_s > 0 ? "below" : "above"} × ${short(one.at.factor)}`
    : `${one.slowest.saved_s > 0 ? "pays" : "never pays"} ${tried(one)}`);
  const speed = (bytes) => (bytes === null ? "–" : `${fixed(bytes / 1e9, 3)} GB/s`);
  const factor = (value) => `× ${short(value)}`;
  const cards = [
    card("Plain step", milliseconds(result.plain_step_s), "ms", "at the speeds of the platform"),
    card("Compressed step", milliseconds(result.compressed_step_s), "ms",
         `${result.saved_s < 0 ? "loses" : "saves"} ${milliseconds(Math.abs(result.saved_s))} ms`),
    card("Sent per step", byteWords(result.bytes_after), "", `in place of ${byteWords(result.bytes_before)}`),
    card("All links together", all ? verdict(all) : "–", "", "speed of the links over that of the platform"),
  ];
  return {
    lead: `${result.model}, ${result.npus} × ${result.npu}, ${result.platform}, ${result.compression}`,
    cards,
    sections: [
      section("sweep", "Step over the speed of all links", lineChart("Step over the speed of all links, both logarithmic",
        [{ name: "plain", points: trials.map((one) => [one.factor, one.plain_step_s]), colour: "forward" },
         { name: "compressed", points: trials.map((one) => [one.factor, one.compressed_step_s]), colour: "allreduce" }],
        axis("speed of all links", factor, powersOfTwo), axis("step", timeWords, powersOfTen),
        { x: factor, y: timeWords }, { tall: true, mode: "index" })),
      section("break-even", "Break-even", table("", [{ title: "Links" }, { title: "Used", number: true }, { title: "Compression" },
                                                     { title: "Break-even", number: true }, { title: "Step there ms", number: true }],
        result.break_even.map((one) => [one.links, speed(one.used_Bps), verdict(one), speed(one.bandwidth_Bps),
                                        one.at ? milliseconds(one.at.compressed_step_s) : "–"]))),
      section("trials", "All speeds", table("", [{ title: "Speed of all links", number: true }, { title: "Plain ms", number: true },
                                                 { title: "Compressed ms", number: true }, { title: "Saved ms", number: true }],
        trials.map((one) => [factor(one.factor), milliseconds(one.plain_step_s), milliseconds(one.compressed_step_s),
                             milliseconds(one.saved_s)]))),
      setUpSection(data), notesSection(data)],
  };
}
