// The pictures of a comparison: the sides over each other, each as the median of its runs with a band from the lowest to the highest.

const SIDES = ["read", "write", "trim", "mixed"];

/** The curves of the sides as lines of a chart. */
function linesOf(data, curves) {
  return curves.map((one) => ({ name: shortened(data.sides[one.side], 40), style: SIDES[one.side], ys: one.ys, ...(one.lows ? { lows: one.lows, highs: one.highs } : {}) }));
}

/** A chart of the sides, whose table has the lowest and the highest run as well. */
function overlaid(data, curves, { title, note, xs, x, y }) {
  const lines = linesOf(data, curves);
  const inWords = y.tell ?? y.format;
  const cell = (values, at) => ((values?.[at] ?? null) === null ? "–" : inWords(values[at]));
  const head = [x.name, ...lines.flatMap((line) => (line.lows ? [line.name, "lowest run", "highest run"] : [line.name]))];
  const rows = () => xs.map((value, at) => [x.tell(value), ...lines.flatMap((line) => (line.lows ? [line.ys, line.lows, line.highs] : [line.ys]).map((values) => cell(values, at)))]);
  return chart({ title, note, xs, lines, x, y, head, rows });
}

function picturesOf(data, part) {
  const pictures = [];
  const times = part.over_time;
  if (times) {
    const x = timeAxis([0, times.end]);
    pictures.push(overlaid(data, times.iops, { title: "IOPS over time", note: "I/Os per second from the start of the job.", xs: times.xs, x, y: { format: plain } }));
    if (times.p99.some((one) => one.ys.some((value) => value > 0))) {
      pictures.push(overlaid(data, times.p99, { title: "99th percentile of latency over time", note: "Completion latency, logarithmic.", xs: times.xs, x, y: { format: latency, log: true } }));
    }
  }
  if (part.percentiles) pictures.push(overlaid(data, part.percentiles.latency, ofPercentiles(part.percentiles.xs)));
  if (part.classes) {
    pictures.push(overlaid(data, part.classes.share, { title: "Latency distribution", note: "Share of I/Os in each class of latency; eight classes for each power of two.", xs: part.classes.xs,
      x: { label: "latency (logarithmic)", name: "latency about", log: true, format: latency, tell: latency }, y: { format: percent } }));
  }
  return pictures;
}

function show(data) {
  const home = document.getElementById("pictures");
  const openers = data.parts.map((part, index) => {
    const details = element("details", { class: "job" }, element("summary", {}, `${shortened(part.job)}: ${part.direction}`));
    const build = () => {
      if (details.children.length === 1) details.append(element("div", { class: "pictures" }, ...attempt("These curves", () => picturesOf(data, part))));
    };
    const open = () => {
      details.open = true;
      build();
    };
    details.addEventListener("toggle", () => details.open && build());
    home.append(details);
    if (index === 0) open();
    return open;
  });
  document.documentElement.dataset.ready = "yes";
  addEventListener("beforeprint", () => {
    openers.slice(0, 20).forEach((open) => open());
    drawAll();
  });
}

if (document.getElementById("pictures")) {
  unpacked().then(show).catch((error) => {
    document.getElementById("pictures").replaceChildren(element("p", { class: "notice" }, "This browser cannot draw the pictures (" + harmless(error.message) + "). The figures above are complete."));
    document.documentElement.dataset.ready = "no";
  });
}
