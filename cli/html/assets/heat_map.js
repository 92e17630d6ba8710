// Maps of colours. One is a table whose cells are coloured by their value: it is its own alternative for whoever does not
// see colours. The other is a picture of shares over time.

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

// Parts of an SVG picture; text goes in as text.
function drawn(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// rows: [name …]; shares[row][i]: 0 … 1, of the interval i, which are `interval` ms long; more(row): words for the
// pointer. Intervals in which nothing happens have the colour of the row.
function timeMap(label, rows, shares, interval, more) {
  const [left, right, top, height, gap, width] = [190, 14, 4, 16, 2, 1000];
  const count = shares[0].length;
  const step = (width - left - right) / count;
  const bottom = top + rows.length * height;
  const cells = [];
  const coloured = (share, attributes, title) => {
    const cell = drawn("rect", attributes, ...(title ? [drawn("title", {}, title)] : []));
    cells.push([cell, share]);
    return cell;
  };
  const lines = rows.flatMap((name, r) => {
    const y = top + r * height;
    const words = name.length > 28 ? `${name.slice(0, 27)}…` : name;
    return [drawn("text", { class: "name", x: left - 8, y: y + 12 }, words, drawn("title", {}, name)),
            coloured(0, { class: "row", x: left, y, width: step * count, height: height - gap }),
            ...shares[r].flatMap((share, i) => (share === 0 ? [] : [coloured(
              share, { class: "cell", x: (left + i * step).toFixed(2), y, width: step.toFixed(2), height: height - gap },
              `${name}, ${fixed(i * interval, 3)} to ${fixed((i + 1) * interval, 3)} ms: ${percentWords(share)}, ${more(r)}`)]))];
  });
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => drawn("text", {
    class: "mark", x: left + part * step * count, y: bottom + 14, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle",
  }, short(Number((part * count * interval).toPrecision(3)))));
  const scale = [0, 0.25, 0.5, 0.75, 1].flatMap((share, i) => [
    coloured(share, { class: "scale", x: left + i * 90, y: bottom + 40, width: 24, height: height - gap }),
    drawn("text", { class: "mark", x: left + i * 90 + 30, y: bottom + 52 }, `${share * 100} %`)]);
  const picture = drawn("svg", { class: "time-map", role: "img", "aria-label": label, viewBox: `0 0 ${width} ${bottom + 60}` },
                        ...lines, ...marks,
                        drawn("text", { class: "mark", x: left + (step * count) / 2, y: bottom + 30, "text-anchor": "middle" },
                              "ms since fp_start"), ...scale);
  const paint = () => {
    for (const [cell, share] of cells) {
      cell.setAttribute("fill", mixed(colour("heat-low"), colour("heat-high"), Math.min(1, share)));
    }
  };
  paint();
  const box = element("div", { class: "scroll" }, picture);
  theme.follow(box, paint);
  return box;
}
