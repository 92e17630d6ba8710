// A table whose cells are coloured by their value: it is its own alternative for whoever does not see colours.

// rows, columns: [text …]; value(row, column): a number or null; words(value); framed(row, column): whether it is marked.
function heatMap(caption, corner, rows, columns, value, words, framed = () => false) {
  const values = rows.map((_, r) => columns.map((__, c) => value(r, c)));
  const known = values.flat().filter((one) => one !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const cells = [];
  const body = values.map((line, r) =>
    element("tr", {}, element("th", { scope: "row" }, rows[r]), ...line.map((one, c) => {
      const cell = element("td", { title: `${rows[r]}, ${columns[c]}` }, one === null ? "" : words(one));
      if (framed(r, c)) cell.className = "best";
      cells.push([cell, one]);
      return cell;
    })));
  const paintCells = () => {
    for (const [cell, one] of cells) {
      if (one === null) continue;
      const hex = mixed(colour("heat-low"), colour("heat-high"), most > least ? (one - least) / (most - least) : 0.5);
      cell.style.background = hex;
      cell.style.color = inkOn(hex);
    }
  };
  paintCells();
  const head = element("tr", {}, element("td", {}, corner),
                       ...columns.map((column) => element("th", { scope: "col" }, column)));
  const map = element("table", { class: "heat", "aria-label": caption }, element("thead", {}, head), element("tbody", {}, ...body));
  const box = element("div", {}, element("p", { class: "quiet" }, caption), element("div", { class: "scroll" }, map));
  theme.follow(box, paintCells);
  return box;
}
