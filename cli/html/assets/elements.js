// Parts of the page. Text always goes in as text, never as markup: names in the data are the user's.

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A section of the page that the bar at the top leads to.
function section(id, title, ...children) {
  return element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title),
                 ...children);
}

function card(label, value, unit, note) {
  return element("div", { class: "card", role: "group", "aria-label": label },
                 element("div", { class: "label" }, label),
                 element("div", { class: "value" }, value, unit ? element("small", {}, ` ${unit}`) : null),
                 element("div", { class: "note" }, note || ""));
}

function pairs(rows) {
  const list = element("dl", { class: "pairs" });
  for (const [name, value] of rows) list.append(element("dt", {}, name), element("dd", {}, String(value)));
  return list;
}

// columns: [{title, number: it is one}]; rows: [{cells: [text or node …], class}] or plain lists of cells.
function table(caption, columns, rows) {
  const cell = (tag, content, column, attributes = {}) =>
    element(tag, { class: column.number ? "number" : null, ...attributes }, content);
  const head = element("tr", {}, ...columns.map((column) => cell("th", column.title, column, { scope: "col" })));
  const body = rows.map((row) => {
    const cells = Array.isArray(row) ? row : row.cells;
    return element("tr", { class: row.class || null }, ...cells.map((content, i) => cell("td", content, columns[i])));
  });
  return element("div", { class: "scroll" },
                 element("table", { class: columns.length > 9 ? "many" : null }, caption ? element("caption", {}, caption) : null, element("thead", {}, head),
                         element("tbody", {}, ...body)));
}

function folded(summary, ...children) {
  return element("details", {}, element("summary", {}, summary), ...children);
}

// Text with a button that copies it.
function copied(text) {
  const button = element("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    const selection = window.getSelection();
    selection.selectAllChildren(block);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Selected";  // where a page may not write to the clipboard, one keystroke is left
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  const block = element("pre", { class: "wrap" }, text);
  return element("div", { class: "copied" }, block, button);
}

function choice(label, options, onchange) {
  const select = element("select", { "aria-label": label, onchange: () => onchange(select.value) },
                         ...options.map(([value, text]) => element("option", { value }, text)));
  return element("label", {}, `${label} `, select);
}

function legend(entries) {
  const list = element("div", { class: "legend" });
  for (const [colour, text] of entries) {
    const mark = element("i", { "aria-hidden": "true" });
    mark.style.background = colour;
    list.append(element("span", {}, mark, text));
  }
  return list;
}
