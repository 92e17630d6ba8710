// The page from its data.

const makers = { run: runSections, tune: tuneSections, compression: compressionSections, collective: collectiveSections,
                 ps: psSections, job: jobSections, sweep: sweepSections };

// "set-up" -> "Set-up".
function navigationWord(id) {
  return id[0].toUpperCase() + id.slice(1);
}

function bar(sections) {
  const links = sections.map((one) => element("a", { href: `#${one.id}` }, navigationWord(one.id)));
  return element("header", { class: "bar" }, element("span", { class: "brand" }, "hcclsim"),
                 element("nav", { "aria-label": "Sections" }, ...links),
                 element("button", { type: "button", onclick: () => theme.toggle() }, "Light / dark"));
}

function makePage(data) {
  const { lead, cards, sections } = makers[data.kind](data);
  const all = [...sections.filter((one) => one !== null), reproduceSection(data)];
  document.getElementById("page").append(
    bar(all),
    element("main", {}, element("h1", {}, data.title), element("p", { class: "lead" }, lead),
            element("div", { class: "cards" }, ...cards), ...all));
}

theme.start();
makePage(JSON.parse(document.getElementById("data").textContent));
