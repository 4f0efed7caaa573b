// The data of a page, formatting of numbers, and charts as SVG: nothing here knows what a job is.

const SVG = "http://www.w3.org/2000/svg";

/** Unpacks the data of the page: compressed JSON. */
async function unpacked() {
  const packed = atob(document.getElementById("data").textContent.trim());
  // Uint8Array.from() takes twenty times as long, which is seconds for a thousand jobs.
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

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

/** Replaces control and bidirectional characters by their numbers. */
function harmless(text) {
  return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (character) => "\\x" + character.charCodeAt(0).toString(16).padStart(2, "0"));
}

function shortened(text, most = 80) {
  const characters = Array.from(harmless(text).slice(0, 4 * most));
  return characters.length > most ? characters.slice(0, most).join("") + "…" : characters.join("");
}

function digits(given) {
  // A report may have anything in place of a number.
  const value = Number(given);
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9) return value.toExponential(2);
  if (size >= 100) return value.toFixed(0);
  return size >= 10 ? String(+value.toFixed(1)) : String(+value.toPrecision(3));
}

function scaled(value, base, units, separator) {
  let unit = 0;
  let rest = Number(value);
  if (!Number.isFinite(rest)) return "–";
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

/** How long something took: 0.5 s, 1 min 40 s, 2 h 46 min. */
function seconds(value) {
  if (!(value >= 120)) return digits(value) + " s";
  const whole = Math.round(value);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [first, second] = hours ? [hours + " h", minutes && minutes + " min"] : [minutes + " min", rest && rest + " s"];
  return second ? first + " " + second : first;
}

/** A time on an axis whose length is in minutes or hours: 1:40, 2:46:40. */
function clock(value, isLong) {
  const whole = Math.round(value);
  const two = (part) => String(part).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  return isLong ? `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** The axis of a time from the beginning: in seconds, in minutes from two minutes on, in hours from two hours on. */
function timeAxis(range) {
  const length = range[1] - range[0];
  if (length < 120) return { label: "time (s)", name: "seconds", range, format: (value) => digits(value), tell: seconds };
  const isLong = length >= 7200;
  const format = (value) => clock(value, isLong);
  const unit = isLong ? "h:min:s" : "min:s";
  return { label: `time (${unit})`, name: unit, range, format, tell: format, steps: [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400] };
}

/** The place of a percentile on an axis whose marks add a nine each. */
const nines = (percentile) => -Math.log10(1 - Math.min(percentile, 99.99999) / 100);

/** The properties of a chart of latencies over percentiles, which are at these places. */
function ofPercentiles(xs) {
  const last = Math.max(1, ...xs);
  const percentile = (place, figures) => String(+(100 * (1 - 10 ** -place)).toPrecision(figures));
  return {
    title: "Latency percentiles",
    note: "The latency that each share of the I/Os does not exceed. Each mark on the axis adds a nine.",
    xs,
    x: { label: "percentile", name: "percentile", range: [0, last], marks: [0, 1, 2, 3, 4, 5].filter((mark) => mark <= last + 1e-6),
      format: (place) => percentile(place, 6), tell: (place) => "p" + percentile(place, 7) },
    y: { format: latency, log: true },
  };
}

/** The marks of an axis that is so wide. */
function marksOf(x, width) {
  const count = Math.max(2, Math.floor(width / 85));
  const [first, last] = x.range;
  const step = x.steps?.find((one) => (last - first) / one <= count);
  if (!step) return x.marks ?? ticks(first, last, count, x.log);
  const marks = [];
  for (let mark = Math.ceil(first / step) * step; mark <= last; mark += step) marks.push(mark);
  return marks;
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
  // Bytes are scaled by 1024, so that round numbers are round in their unit.
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

/** A table that is built when it is opened. */
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

/** How figures that have not been shown yet are drawn: printing needs them all. */
const undrawn = new Set();

function drawAll() {
  undrawn.forEach((draw) => draw());
}

/** Builds something from a report, which may be anything. An error becomes a sentence, and affects nothing else. */
function attempt(what, make) {
  try {
    return make();
  } catch (error) {
    const words = `${what} cannot be shown, because the report has something else in its place than is expected (${harmless(error.message)}).`;
    return [element("p", { class: "notice" }, words)];
  }
}

/** A figure that is redrawn when its width changes. */
function figure(title, note, keys, draw, tableOf) {
  const caption = element("figcaption", {}, title, element("small", {}, note));
  const legend = element("div", { class: "legend" }, ...keys.map((key) => element("span", {},
    shape("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" }, shape("path", { class: key.style + " line", d: "M0 5H26" })), key.name)));
  const place = element("div");
  const readout = element("output", { class: "readout" });
  const made = element("figure", {}, caption, ...(keys.length > 1 ? [legend] : []), place, readout, tableOf);
  let drawn = 0;
  const drawNow = () => {
    undrawn.delete(drawFirst);
    place.replaceChildren(...attempt(title, () => [draw(drawn, readout)]));
  };
  const drawFirst = () => {
    drawn = Math.floor(place.clientWidth) || 600;
    drawNow();
  };
  undrawn.add(drawFirst);
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && Math.abs(width - drawn) > 1) {
      const isFirst = drawn === 0;
      drawn = width;
      // Without a further frame, as in a browser without a window, the first drawing would never come.
      if (isFirst) drawNow();
      else requestAnimationFrame(drawNow);
    }
  }).observe(place);
  return made;
}

/**
 * Lets a picture tell its values one by one, in words below it: those at the mouse, and with the arrow keys. To a screen reader it
 * is a slider, so that the keys come here. `count` values; `tell(index)`: the words; `nearest(x)`: the value at a place.
 */
function tellValues(svg, { title, width, count, readout, tell, nearest }) {
  const attributes = { role: "slider", tabindex: "0", "aria-label": title, "aria-valuemin": 1, "aria-valuemax": Math.max(1, count), "aria-valuenow": 1,
    "aria-valuetext": "arrow keys move through the values; the table below has them all" };
  for (const [key, value] of Object.entries(attributes)) svg.setAttribute(key, value);
  let at = -1;
  const point = (index) => {
    if (!count) return;
    at = Math.min(count - 1, Math.max(0, index));
    const words = tell(at);
    readout.textContent = words;
    svg.setAttribute("aria-valuenow", at + 1);
    svg.setAttribute("aria-valuetext", words);
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    point(nearest(((event.clientX - box.left) / box.width) * width));
  });
  svg.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: count - 1, PageUp: at - 10, PageDown: at + 10 };
    if (event.key in steps) {
      event.preventDefault();
      point(steps[event.key]);
    }
  });
  return svg;
}

/** Marks of times: grey behind everything for a ramp, strips for stalls (below) and for a steady state (above). */
function drawShades(svg, shades, across, [first, last], bottom) {
  for (const [from, to, style] of shades) {
    const left = across(Math.max(first, from));
    const wide = Math.max(style === "stall" ? 2 : 0, across(Math.min(last, to)) - left);
    const [y, height] = style === "stall" ? [bottom - 5, 5] : style === "ramp" ? [MARGIN.top, bottom - MARGIN.top] : [MARGIN.top - 5, 5];
    svg.append(shape("rect", { class: style, x: left, width: wide, y, height }));
  }
}

const MARGIN = { left: 62, right: 14, top: 10, bottom: 38 };

/** Axes with their grid; later drawings are above it. */
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
    // Labels that would overlap each other, or the edge, are left out.
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
    // A point between gaps would be invisible.
    if (!pen && (ys[index + 1] === null || ys[index + 1] === undefined)) path += "h1.5";
    pen = true;
  });
  return path;
}

/** A dot for each value, for values that no line should join. */
function dots(xs, ys, x, y) {
  return xs.map((value, index) => ((ys[index] ?? null) === null ? "" : `M${x(value).toFixed(1)} ${y(ys[index]).toFixed(1)}h0`)).join("");
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
 * A line chart. `lines`: { name, style, ys, lows, highs }, all over the same `xs`; null = a gap. `hasPoints`: each value is marked. `x`, `y`: { label, format, tell, log }; `y` begins at `y.from`, or 0.
 * `isDots`: values are not joined. `shades`: parts of the x axis with a class. `marks`: places in x, each with a word. The values below the cursor are told in words.
 */
function chart({ title, note, xs, lines, x, y, shades = [], marks = [], keys = lines, rows, head }) {
  const seen = lines.flatMap((line) => [...line.ys, ...(line.highs ?? []), ...(y.log ? line.lows ?? [] : [])])
    .filter((value) => value !== null && (!y.log || value > 0));
  let low = y.log ? Infinity : y.from ?? 0;
  let high = -Infinity;
  for (const value of seen) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (!y.log) high = high > 0 ? high + 0.06 * (high - low || high) : 1;
  if (y.log) [low, high] = [low / 1.2, Math.max(high, low * 2) * 1.2];
  const [first, last] = x.range ?? [xs[0], xs[xs.length - 1]];
  const inWords = y.tell ?? y.format;
  const heading = head ?? [x.name ?? x.label, ...lines.map((line) => line.name)];
  const allRows = rows ?? (() => xs.map((value, index) =>
    [x.tell(value), ...lines.map((line) => (line.ys[index] === null ? "–" : inWords(line.ys[index])))]));
  const draw = (width, readout) => {
    const height = Math.round(Math.min(300, Math.max(210, width * 0.5)));
    const bottom = height - MARGIN.bottom;
    const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}` });
    const across = scale(first, last, x.log, MARGIN.left, width - MARGIN.right);
    const up = scale(low, high, y.log, bottom, MARGIN.top);
    drawShades(svg, shades, across, [first, last], bottom);
    for (const [at, word] of marks) {
      const place = across(at);
      const isLeft = place < width / 2;
      svg.append(shape("path", { class: "knee", d: `M${place} ${MARGIN.top}V${bottom}` }),
        shape("text", { x: place + (isLeft ? 5 : -5), y: bottom - 6, "text-anchor": isLeft ? "start" : "end" }, word));
    }
    axes(svg, width, height, { ticks: marksOf({ ...x, range: [first, last] }, width), at: across, format: x.format, label: x.label },
      { ticks: ticks(low, high, 5, y.log, y.binary), at: up, format: y.format });
    for (const line of lines) {
      if (line.lows) svg.append(shape("path", { class: line.style + " band", d: area(xs, line.lows, line.highs, across, up) }));
      svg.append(line.isDots ? shape("path", { class: line.style + " dots", d: dots(xs, line.ys, across, up) })
        : shape("path", { class: line.style + " line", d: outline(xs, line.ys, across, up) }));
      if (line.hasPoints) svg.append(shape("path", { class: line.style + " dots points", d: dots(xs, line.ys, across, up) }));
    }
    const cursor = shape("path", { class: "cursor", d: "" });
    svg.append(cursor);
    return tellValues(svg, { title: `${title}. ${note}`, width, count: xs.length, readout,
      tell: (at) => {
        cursor.setAttribute("d", `M${across(xs[at]).toFixed(1)} ${MARGIN.top}V${bottom}`);
        const values = lines.map((line) => `${line.name} ${line.ys[at] === null || line.ys[at] === undefined ? "–" : inWords(line.ys[at])}`);
        return `${x.tell(xs[at])}: ${values.join(", ")}`;
      },
      nearest: (wanted) => {
        let nearest = 0;
        xs.forEach((value, index) => {
          if (Math.abs(across(value) - wanted) < Math.abs(across(xs[nearest]) - wanted)) nearest = index;
        });
        return nearest;
      } });
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

/** Colours the cells of a table by their data-value: the brighter, the more, by the logarithm. */
function colourCells(cells) {
  const valued = cells.filter((cell) => Number(cell.dataset.value) > 0);
  const logarithms = valued.map((cell) => Math.log(Number(cell.dataset.value)));
  const [low, high] = [Math.min(...logarithms), Math.max(...logarithms)];
  valued.forEach((cell, index) => {
    const colour = heatColour(high > low ? (logarithms[index] - low) / (high - low) : 1);
    cell.style.backgroundColor = `rgb(${colour})`;
    cell.style.color = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2] > 140 ? "#000" : "#fff";
  });
}

/** The smallest share that has a colour; those above have theirs by their logarithm. */
const FAINTEST = 1e-4;

/** The background of a heat map: darker than the faintest colour, even on a light page. */
const NOTHING = [22, 16, 34];

/**
 * A heat map: `columns` of pairs (class, share of the column), over `edges` in x, which may be uneven; `begin(class)` is where a class
 * begins in y. `null` = there is nothing in it.
 */
function heatMap({ title, note, edges, columns, begin, x, y, rows, head, shades = [] }) {
  let [lowest, highest] = [Infinity, -Infinity];
  for (const column of columns) {
    for (const [kind] of column) [lowest, highest] = [Math.min(lowest, kind), Math.max(highest, kind)];
  }
  if (lowest > highest) return null;
  const count = highest - lowest + 1;
  // Columns are as wide as their times: each dot across is of the column at its time.
  const dots = Math.max(columns.length, 1200);
  const [origin, length] = [edges[0], edges[edges.length - 1] - edges[0]];
  const canvas = element("canvas", { width: dots, height: count });
  const context = canvas.getContext("2d");
  const image = context.createImageData(dots, count);
  for (let pixel = 0; pixel < dots * count; pixel += 1) image.data.set([...NOTHING, 255], 4 * pixel);
  let place = 0;
  for (let dot = 0; dot < dots; dot += 1) {
    while (place < columns.length - 1 && edges[place + 1] <= origin + ((dot + 0.5) / dots) * length) place += 1;
    for (const [kind, share] of columns[place]) {
      const colour = heatColour(1 - Math.log(Math.max(share, FAINTEST)) / Math.log(FAINTEST));
      image.data.set([...colour, 255], 4 * ((highest - kind) * dots + dot));
    }
  }
  context.putImageData(image, 0, 0);
  const picture = canvas.toDataURL();
  const draw = (width, readout) => {
    const height = Math.round(Math.min(300, Math.max(210, width * 0.5)));
    const bottom = height - MARGIN.bottom;
    const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}` });
    const across = scale(edges[0], edges[edges.length - 1], false, MARGIN.left, width - MARGIN.right);
    // Classes are equally high; between the first and the last one they are nearly logarithmic.
    const up = (value) => {
      let kind = lowest;
      while (kind < highest && begin(kind + 1) <= value) kind += 1;
      const within = (value - begin(kind)) / (begin(kind + 1) - begin(kind));
      return bottom - ((kind - lowest + Math.min(1, Math.max(0, within))) / count) * (bottom - MARGIN.top);
    };
    const inside = ticks(Math.max(begin(lowest), 1), begin(highest + 1), 5, true);
    axes(svg, width, height, { ticks: marksOf({ ...x, range: [edges[0], edges[edges.length - 1]] }, width), at: across, format: x.format, label: x.label },
      { ticks: inside, at: up, format: y.format });
    svg.append(shape("image", { href: picture, class: "heat", x: MARGIN.left, y: MARGIN.top, width: width - MARGIN.right - MARGIN.left,
      height: bottom - MARGIN.top, preserveAspectRatio: "none" }));
    const strips = shades.map(([from, to, style]) => [from, to, style === "ramp" ? "ramp strip" : style]);
    drawShades(svg, strips, across, [edges[0], edges[edges.length - 1]], bottom);
    const cursor = shape("path", { class: "cursor", d: "" });
    svg.append(cursor);
    return tellValues(svg, { title: `${title}. ${note}`, width, count: columns.length, readout,
      tell: (at) => {
        const middle = (edges[at] + edges[at + 1]) / 2;
        cursor.setAttribute("d", `M${across(middle).toFixed(1)} ${MARGIN.top}V${bottom}`);
        const column = columns[at];
        if (!column.length) return `${x.tell(middle)}: nothing was measured`;
        const [most, share] = column.reduce((best, one) => (one[1] > best[1] ? one : best));
        return `${x.tell(middle)}: from ${y.format(begin(column[0][0]))} to ${y.format(begin(column[column.length - 1][0] + 1))}, ` +
          `most (${percent(100 * share)}) from ${y.format(begin(most))} to ${y.format(begin(most + 1))}`;
      },
      nearest: (wanted) => Math.max(0, columns.findIndex((_, index) => across(edges[index + 1]) >= wanted)) });
  };
  const made = figure(title, note, [], draw, tableBelow(title, head, rows));
  const name = "heat" + Math.random().toString(36).slice(2);
  const stops = HEAT.map((colour, index) => shape("stop", { offset: index / (HEAT.length - 1), "stop-color": `rgb(${colour})` }));
  // Shares of 0.01%, 1% and 100% are at the ends and in the middle, because colours follow the logarithm.
  const half = (from) => shape("svg", { viewBox: `${from} 0 40 10`, "aria-hidden": "true", class: "half" },
    shape("rect", { width: 80, height: 10, fill: `url(#${name})` }));
  const first = half(0);
  first.prepend(shape("defs", {}, shape("linearGradient", { id: name }, ...stops)));
  made.querySelector("output").before(element("div", { class: "legend" },
    element("span", {}, "share of the window's I/Os: 0.01% ", first, " 1% ", half(40), " 100%")));
  return made;
}

/** Bars side by side, one for each name; `bars`: { name, style, values } in percent. */
function barChart({ title, note, names, bars: given, label, tell = percent }) {
  const bars = given.map((bar) => ({ ...bar, values: names.map((_, index) => (bar.values[index] > 0 && Number.isFinite(bar.values[index]) ? bar.values[index] : 0)) }));
  const draw = (width, readout) => {
    const height = 220;
    const bottom = height - MARGIN.bottom;
    const svg = shape("svg", { class: "chart", viewBox: `0 0 ${width} ${height}` });
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
    return tellValues(svg, { title: `${title}. ${note}`, width, count: names.length, readout,
      tell: (at) => `${names[at]}: ${bars.map((bar) => (bars.length > 1 ? bar.name + " " : "") + tell(bar.values[at])).join(", ")}`,
      nearest: (wanted) => Math.floor((wanted - MARGIN.left) / slot) });
  };
  return figure(title, note, bars, draw, tableBelow(title, [label, ...bars.map((bar) => bar.name)],
    () => names.map((name, index) => [name, ...bars.map((bar) => tell(bar.values[index]))])));
}
