// Numbers in words, and pictures as SVG: nothing here knows what a job is.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children. Texts are always text, never markup. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** What would act on a terminal or turn the direction of a text is shown as its number. */
function harmless(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (character) => "\\x" + character.charCodeAt(0).toString(16).padStart(2, "0"));
}

function shortened(text, most = 80) {
  const characters = Array.from(harmless(text).slice(0, 4 * most));
  return characters.length > most ? characters.slice(0, most).join("") + "…" : characters.join("");
}

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return value.toFixed(0);
  return size >= 10 ? String(+value.toFixed(1)) : String(+value.toPrecision(3));
}

function scaled(value, base, units, separator) {
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= base * 0.9995 && unit < units.length - 1) {
    rest /= base;
    unit += 1;
  }
  return digits(rest) + separator + units[unit];
}

const plain = (value) => scaled(value, 1000, ["", "k", "M", "G", "T"], "");
const bandwidth = (value) => scaled(value, 1024, ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"], " ");
const amount = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], " ");
const latency = (value) => (value < 60e9 ? scaled(value, 1000, ["ns", "µs", "ms", "s"], " ") : digits(value / 1e9) + " s");
const percent = (value) => (value > 0 && value < 0.001 ? "<0.001" : digits(value)) + "%";

function seconds(value) {
  if (value < 120) return digits(value) + " s";
  const whole = Math.round(value);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return (parts[0] ? parts[0] + ":" + String(parts[1]).padStart(2, "0") : parts[1]) + ":" + String(parts[2]).padStart(2, "0");
}

/** Where an axis has its marks. */
function ticks(low, high, count, log, binary) {
  if (log) {
    const marks = [];
    const decades = Math.log10(high / low);
    const steps = decades > count ? [1] : decades > 2.5 ? [1] : decades > 1.2 ? [1, 3] : [1, 2, 5];
    const every = Math.max(1, Math.ceil(decades / count));
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      if (power % every) continue;
      for (const step of steps) {
        const mark = step * 10 ** power;
        if (mark >= low * 0.999 && mark <= high * 1.001) marks.push(mark);
      }
    }
    return marks;
  }
  const rough = (high - low) / Math.max(1, count);
  // Bytes are scaled by 1024: round numbers are those of their unit.
  const unit = binary ? 1024 ** Math.max(0, Math.floor(Math.log(high) / Math.log(1024) + 1e-9)) : 1;
  const power = 10 ** Math.floor(Math.log10(rough / unit)) * unit;
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const marks = [];
  for (let mark = Math.ceil(low / step) * step; mark <= high + step * 1e-6; mark += step) marks.push(+mark.toPrecision(14));
  return marks;
}

function scale(low, high, log, from, to) {
  if (log) {
    const [a, b] = [Math.log(low), Math.log(high)];
    return (value) => from + ((Math.log(Math.max(value, low)) - a) / (b - a || 1)) * (to - from);
  }
  return (value) => from + ((value - low) / (high - low || 1)) * (to - from);
}

/** A table that is made when somebody opens it. */
function tableBelow(name, head, rows) {
  const details = element("details", {}, element("summary", {}, "Table: " + name));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(table(name, head, rows()));
  });
  return details;
}

function table(caption, head, rows) {
  const cells = (row, kind) => row.map((text, column) => {
    const heading = kind === "th" || column === 0;
    const scope = kind === "th" ? "col" : "row";
    return heading ? element("th", { scope, class: column === 0 ? "name" : "" }, text) : element("td", {}, text);
  });
  const body = rows.map((row) => element("tr", {}, ...cells(row, "td")));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...cells(head, "th"))), element("tbody", {}, ...body)));
}

/** A figure that is drawn anew when its width changes. */
function figure(title, note, keys, draw, tableOf) {
  const caption = element("figcaption", {}, title, element("small", {}, note));
  const legend = element("div", { class: "legend" }, ...keys.map((key) => element("span", {},
    shape("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" }, shape("path", { class: key.style + " line", d: "M0 5H26" })), key.name)));
  const place = element("div");
  const readout = element("output", { class: "readout", "aria-live": "polite" });
  const made = element("figure", {}, caption, ...(keys.length > 1 ? [legend] : []), place, readout, tableOf);
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && Math.abs(width - drawn) > 1) {
      drawn = width;
      requestAnimationFrame(() => place.replaceChildren(draw(width, readout)));
    }
  }).observe(place);
  return made;
}

const MARGIN = { left: 62, right: 14, top: 10, bottom: 38 };

/** Axes with their grid; what is drawn later is above it. */
function axes(svg, width, height, x, y) {
  const [left, right, top, bottom] = [MARGIN.left, width - MARGIN.right, MARGIN.top, height - MARGIN.bottom];
  for (const mark of y.ticks) {
    const at = y.at(mark);
    svg.append(shape("path", { class: "grid", d: `M${left} ${at}H${right}` }),
      shape("text", { x: left - 6, y: at + 4, "text-anchor": "end" }, y.format(mark)));
  }
  let free = -Infinity;
  for (const mark of x.ticks) {
    const at = x.at(mark);
    const text = x.format(mark);
    const half = 3.4 * text.length;
    svg.append(shape("path", { class: "axis", d: `M${at} ${bottom}v4` }));
    // Labels that would touch each other, or the edge, are left out.
    const centre = Math.min(at, width - half - 1);
    if (centre - half < free + 6) continue;
    free = centre + half;
    svg.append(shape("text", { x: centre, y: bottom + 17, "text-anchor": "middle" }, text));
  }
  svg.append(shape("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }),
    shape("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, x.label));
}

function outline(xs, ys, x, y) {
  let path = "";
  let pen = false;
  xs.forEach((value, index) => {
    if (ys[index] === null || ys[index] === undefined) {
      pen = false;
      return;
    }
    path += `${pen ? "L" : "M"}${x(value).toFixed(1)} ${y(ys[index]).toFixed(1)}`;
    // A point between gaps would not be seen.
    if (!pen && (ys[index + 1] === null || ys[index + 1] === undefined)) path += "h1.5";
    pen = true;
  });
  return path;
}

/** The area between two curves, in pieces without gaps. */
function area(xs, lows, highs, x, y) {
  let path = "";
  let piece = [];
  const close = () => {
    if (piece.length) {
      const there = piece.map((index) => `${x(xs[index]).toFixed(1)} ${y(highs[index]).toFixed(1)}`);
      const back = piece.map((index) => `${x(xs[index]).toFixed(1)} ${y(lows[index]).toFixed(1)}`).reverse();
      path += `M${there.join("L")}L${back.join("L")}Z`;
    }
    piece = [];
  };
  xs.forEach((_, index) => (highs[index] === null ? close() : piece.push(index)));
  close();
  return path;
}

/**
 * A line chart. `lines`: { name, style, ys, lows, highs }, all over the same `xs`; null = a gap. `x`, `y`: { label, format, log }.
 * `shades`: parts of the x axis with a class. The values below the cursor are told in words.
 */
function chart({ title, note, xs, lines, x, y, shades = [], keys = lines, rows }) {
  const seen = lines.flatMap((line) => [...line.ys, ...(line.highs ?? []), ...(y.log ? line.lows ?? [] : [])])
    .filter((value) => value !== null && (!y.log || value > 0));
  let low = y.log ? Infinity : 0;
  let high = -Infinity;
  for (const value of seen) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!y.log) high = high > 0 ? high * 1.06 : 1;
  if (y.log) [low, high] = [low / 1.2, Math.max(high, low * 2) * 1.2];
  const [first, last] = x.range ?? [xs[0], xs[xs.length - 1]];
  const heading = [x.name ?? x.label, ...lines.map((line) => line.name)];
  const allRows = rows ?? (() => xs.map((value, index) =>
    [x.tell(value), ...lines.map((line) => (line.ys[index] === null ? "–" : y.format(line.ys[index])))]));
  const draw = (width, readout) => {
    const height = Math.round(Math.min(300, Math.max(210, width * 0.5)));
    const bottom = height - MARGIN.bottom;
    const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: "0",
      "aria-label": `${title}. ${note} Arrow keys move through the values; the table below has them all.` });
    const across = scale(first, last, x.log, MARGIN.left, width - MARGIN.right);
    const up = scale(low, high, y.log, bottom, MARGIN.top);
    for (const [from, to, style] of shades) {
      const left = across(Math.max(first, from));
      svg.append(shape("rect", { class: style, x: left, width: Math.max(style === "stall" ? 2 : 0, across(Math.min(last, to)) - left),
        y: style === "stall" ? bottom - 5 : MARGIN.top, height: style === "stall" ? 5 : bottom - MARGIN.top }));
    }
    axes(svg, width, height,
      { ticks: x.marks ?? ticks(first, last, Math.max(2, Math.floor(width / 85)), x.log), at: across, format: x.format, label: x.label },
      { ticks: ticks(low, high, 5, y.log, y.binary), at: up, format: y.format });
    for (const line of lines) {
      if (line.lows) svg.append(shape("path", { class: line.style + " band", d: area(xs, line.lows, line.highs, across, up) }));
      svg.append(shape("path", { class: line.style + " line", d: outline(xs, line.ys, across, up) }));
    }
    const cursor = shape("path", { class: "cursor", d: "" });
    svg.append(cursor);
    let at = -1;
    const point = (index) => {
      at = Math.min(xs.length - 1, Math.max(0, index));
      cursor.setAttribute("d", `M${across(xs[at]).toFixed(1)} ${MARGIN.top}V${bottom}`);
      const values = lines.map((line) => `${line.name} ${line.ys[at] === null || line.ys[at] === undefined ? "–" : y.format(line.ys[at])}`);
      readout.textContent = `${x.tell(xs[at])}: ${values.join(", ")}`;
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const wanted = ((event.clientX - box.left) / box.width) * width;
      let nearest = 0;
      xs.forEach((value, index) => {
        if (Math.abs(across(value) - wanted) < Math.abs(across(xs[nearest]) - wanted)) nearest = index;
      });
      point(nearest);
    });
    svg.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: xs.length - 1, PageUp: at - 10, PageDown: at + 10 };
      if (event.key in steps) {
        event.preventDefault();
        point(steps[event.key]);
      }
    });
    return svg;
  };
  return figure(title, note, keys, draw, tableBelow(title, heading, allRows));
}

/** Viridis, in a few steps: it is even to the eye, also without colours. */
const HEAT = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];

function heatColour(share) {
  const place = Math.min(0.9999, Math.max(0, share)) * (HEAT.length - 1);
  const [from, to] = [HEAT[Math.floor(place)], HEAT[Math.floor(place) + 1]];
  return from.map((value, index) => Math.round(value + (to[index] - value) * (place % 1)));
}

/** The smallest share that has a colour; those above have theirs by their logarithm. */
const FAINTEST = 1e-4;

/**
 * A heat map: `columns` of pairs (class, share of the column), over `edges` in x; `begin(class)` is where a class begins in y.
 */
function heatMap({ title, note, edges, columns, begin, x, y, rows, head }) {
  let [lowest, highest] = [Infinity, -Infinity];
  for (const column of columns) {
    for (const [kind] of column) [lowest, highest] = [Math.min(lowest, kind), Math.max(highest, kind)];
  }
  const count = highest - lowest + 1;
  const canvas = element("canvas", { width: columns.length, height: count });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns.length, count);
  columns.forEach((column, place) => {
    for (const [kind, share] of column) {
      const pixel = 4 * ((highest - kind) * columns.length + place);
      image.data.set([...heatColour(1 - Math.log(Math.max(share, FAINTEST)) / Math.log(FAINTEST)), 255], pixel);
    }
  });
  context.putImageData(image, 0, 0);
  const picture = canvas.toDataURL();
  const draw = (width) => {
    const height = Math.round(Math.min(300, Math.max(210, width * 0.5)));
    const bottom = height - MARGIN.bottom;
    const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${title}. ${note} The table below has the values.` });
    const across = scale(edges[0], edges[edges.length - 1], false, MARGIN.left, width - MARGIN.right);
    // Classes are equally high; between the first and the last one they are nearly logarithmic.
    const up = (value) => {
      let kind = lowest;
      while (kind < highest && begin(kind + 1) <= value) kind += 1;
      const within = (value - begin(kind)) / (begin(kind + 1) - begin(kind));
      return bottom - ((kind - lowest + Math.min(1, Math.max(0, within))) / count) * (bottom - MARGIN.top);
    };
    const inside = ticks(Math.max(begin(lowest), 1), begin(highest + 1), 5, true);
    axes(svg, width, height, { ticks: ticks(edges[0], edges[edges.length - 1], Math.max(2, Math.floor(width / 85)), false), at: across, format: x.format, label: x.label },
      { ticks: inside, at: up, format: y.format });
    svg.append(shape("image", { href: picture, class: "heat", x: MARGIN.left, y: MARGIN.top, width: width - MARGIN.right - MARGIN.left,
      height: bottom - MARGIN.top, preserveAspectRatio: "none" }));
    return svg;
  };
  const made = figure(title, note, [], draw, tableBelow(title, head, rows));
  const stops = HEAT.map((colour, index) => shape("stop", { offset: index / (HEAT.length - 1), "stop-color": `rgb(${colour})` }));
  const name = "heat" + Math.random().toString(36).slice(2);
  made.querySelector("output").replaceWith(element("div", { class: "legend" }, element("span", {}, "share of the window's I/Os: 0.01% ",
    shape("svg", { viewBox: "0 0 80 10", width: 80, height: 10, "aria-hidden": "true", class: "wide" },
      shape("defs", {}, shape("linearGradient", { id: name }, ...stops)), shape("rect", { width: 80, height: 10, fill: `url(#${name})` })), " 100%")));
  return made;
}

/** Bars side by side, one for each name; `bars`: { name, style, values } in percent. */
function barChart({ title, note, names, bars, label, tell = percent }) {
  const draw = (width) => {
    const height = 220;
    const bottom = height - MARGIN.bottom;
    const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${title}. ${note} The table below has the values.` });
    const most = Math.max(1e-9, ...bars.flatMap((bar) => bar.values));
    const up = scale(0, most * 1.12, false, bottom, MARGIN.top);
    const slot = (width - MARGIN.left - MARGIN.right) / names.length;
    axes(svg, width, height, { ticks: names.map((_, index) => index), at: (index) => MARGIN.left + slot * (index + 0.5), format: (index) => names[index], label },
      { ticks: ticks(0, most * 1.12, 4, false), at: up, format: tell });
    const thick = Math.min(46, (slot * 0.8) / bars.length);
    bars.forEach((bar, place) => bar.values.forEach((value, index) => {
      const left = MARGIN.left + slot * (index + 0.5) + thick * (place - bars.length / 2);
      svg.append(shape("rect", { class: bar.style + " bar", x: left + 1, width: Math.max(1, thick - 2), y: up(value), height: bottom - up(value) }));
      if (bars.length === 1 && value > 0 && slot > 44) svg.append(shape("text", { x: left + thick / 2, y: up(value) - 4, "text-anchor": "middle" }, tell(value)));
    }));
    return svg;
  };
  return figure(title, note, bars, draw, tableBelow(title, [label, ...bars.map((bar) => bar.name)],
    () => names.map((name, index) => [name, ...bars.map((bar) => tell(bar.values[index]))])));
}
