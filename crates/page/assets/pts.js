// The pictures of a result of iolite pts: convergence, the window of the steady state, and those of each test.

const SERIES = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

const kib = (cell) => Number.parseFloat(cell.block);
const mix = (read) => `${read}/${100 - read}`;
const distinct = (values) => [...new Set(values)];
const numbers = (count) => Array.from({ length: count }, (_, index) => index + 1);
const gigabytes = (value) => scaled(value, 1000, ["B", "kB", "MB", "GB", "TB", "PB"], " ");

const FORMATS = { iops: plain, bw_bytes: bandwidth, mean_ns: latency, max_ns: latency };
const WORDS = { iops: "IOPS", bw_bytes: "bandwidth", mean_ns: "mean response time", max_ns: "longest response time" };

/** The cells whose rounds are drawn, and their names. */
function drawnCells(test) {
  const all = test.matrix ?? [];
  if (test.test === "iops") return all.filter((cell) => cell.read_percent === 0).map((cell) => [cell.block, cell]);
  if (test.test === "lat") return all.filter((cell) => cell.read_percent === 0 || cell.block === "4 KiB").map((cell) => [cell.what, cell]);
  if (test.test === "dirth" || test.test === "ecw") {
    const deepest = Math.max(...all.map((cell) => cell.depth));
    return all.filter((cell) => cell.depth === deepest).map((cell) => [`${cell.threads} threads`, cell]);
  }
  return all.map((cell) => [cell.what, cell]);
}

/** How the rounds converge. */
function convergence(test) {
  const cells = drawnCells(test).slice(0, SERIES.length);
  const key = test.steady?.quantity ?? "iops";
  const count = test.rounds ?? 0;
  if (!cells.length || count < 2) return [];
  const window = test.steady.window;
  const lines = cells.map(([name, cell], index) => ({ name, style: SERIES[index], hasPoints: true, ys: cell.rounds[key] }));
  const isWide = lines.some((line) => line.ys.some((value) => value > 0)) && key !== "bw_bytes";
  return [chart({ title: "Convergence", note: `The ${WORDS[key]} of each round${isWide ? ", logarithmic" : ""}.${test.test === "iops" ? " Writes only." : ""} The strip marks the five rounds of which means are taken.`,
    xs: numbers(count), lines, shades: window ? [[window.first, window.last, "steadystate"]] : [],
    x: { label: "round", name: "round", range: [1, count], marks: numbers(count), format: String, tell: (round) => `round ${round}` },
    y: { format: FORMATS[key], log: isWide } })];
}

/** The five rounds, their average, the fitted line, and what is allowed. */
function steadyWindow(test) {
  const window = test.steady?.window;
  const values = test.steady?.values ?? [];
  if (!window || values.length < window.last) return [];
  const xs = numbers(window.last).slice(window.first - 1);
  const same = (value) => xs.map(() => value);
  const format = FORMATS[test.steady.quantity];
  const { average } = window;
  const lines = [
    { name: `measured: ${test.steady.tracked}`, style: "s0", hasPoints: true, ys: values.slice(window.first - 1, window.last) },
    { name: "average", style: "s7", ys: same(average) },
    { name: "line that fits best", style: "s1", ys: xs.map((round) => window.line_at_0 + window.line_per_round * round) },
    { name: "110% of the average", style: "s4", ys: same(1.1 * average) },
    { name: "90% of the average", style: "s4", ys: same(0.9 * average) },
  ];
  const from = Math.max(0, 0.95 * Math.min(...lines.flatMap((line) => line.ys)));
  const change = (window.line_per_round >= 0 ? 1 : -1) * window.slope;
  return [chart({ title: test.steady.reached ? "Steady state" : "The last five rounds, which are not steady",
    note: `Excursion ${percent(100 * window.excursion)} of ${percent(100 * test.steady.excursion_limit)} allowed; the line changes by ` +
      `${percent(100 * change)} of ±${percent(100 * test.steady.slope_limit)} allowed.`,
    xs, lines, x: { label: "round", name: "round", range: [xs[0], xs[xs.length - 1]], marks: xs, format: String, tell: (round) => `round ${round}` },
    y: { format, from } })];
}

/** IOPS over the block size, a line for each mix. */
function ofIops(test) {
  const cells = test.matrix;
  const sizes = distinct(cells.map(kib)).sort((one, other) => one - other);
  const reads = distinct(cells.map((cell) => cell.read_percent));
  const at = (read, size) => cells.find((cell) => cell.read_percent === read && kib(cell) === size);
  const lines = reads.map((read, index) => ({ name: mix(read), style: SERIES[index % SERIES.length], hasPoints: true, ys: sizes.map((size) => at(read, size)?.iops ?? null) }));
  return [chart({ title: "IOPS over block size", note: "A line for each mix of reads and writes; both axes are logarithmic.", xs: sizes, lines,
    x: { label: "block size (KiB)", name: "KiB", log: true, range: [sizes[0], sizes[sizes.length - 1]], marks: sizes, format: String, tell: (size) => `${size} KiB` },
    y: { format: plain, log: true } })];
}

/** The percentiles of cells, and how many I/Os had each response time. */
function distributions(cells) {
  const told = cells.filter(([, cell]) => Object.keys(cell.percentiles_ns ?? {}).length > 1).slice(0, SERIES.length);
  const pictures = [];
  if (told.length) {
    const keys = distinct(told.flatMap(([, cell]) => Object.keys(cell.percentiles_ns))).map(Number).sort((one, other) => one - other);
    const lines = told.map(([name, cell], index) => ({ name, style: SERIES[index], hasPoints: true, ys: keys.map((key) => cell.percentiles_ns[String(key)] ?? null) }));
    pictures.push(chart({ ...ofPercentiles(keys.map(nines)), title: "Response times by percentile", lines }));
  }
  const counted = cells.filter(([, cell]) => (cell.histogram_ns ?? []).length > 1);
  if (counted.length) {
    const ends = distinct(counted.flatMap(([, cell]) => cell.histogram_ns.map(([end]) => end))).sort((one, other) => one - other);
    const lines = counted.map(([name, cell], index) => {
      const found = new Map(cell.histogram_ns);
      return { name, style: SERIES[index], hasPoints: true, ys: ends.map((end) => found.get(end) ?? null) };
    });
    pictures.push(chart({ title: "Histogram of response times", note: "I/Os in each class of response time; both axes are logarithmic.", xs: ends, lines,
      x: { label: "response time", name: "up to", log: true, range: [ends[0], ends[ends.length - 1]], format: latency, tell: (end) => `up to ${latency(end)}` },
      y: { format: plain, log: true } }));
  }
  return pictures;
}

function ofLatency(test) {
  const small = test.matrix.filter((cell) => cell.block === "4 KiB").map((cell) => [cell.what, cell]);
  const single = (test.cells ?? []).map((cell) => [`${cell.what}, histogram`, cell]);
  return distributions([...small, ...single]);
}

/** IOPS and response times over what was written. */
function ofSaturation(test) {
  const cells = test.cells ?? [];
  if (cells.length < 2) return [];
  const xs = cells.map((cell) => cell.written_bytes);
  const window = test.steady?.reached ? test.steady.window : null;
  const shades = window ? [[xs[window.first - 1], xs[window.last - 1], "steadystate"]] : [];
  const x = { label: "written in total (TGBW)", name: "written", range: [0, xs[xs.length - 1]], format: gigabytes, tell: (value) => `${gigabytes(value)} written` };
  const line = (name, style, key) => ({ name, style, ys: cells.map((cell) => cell[key] ?? null) });
  const note = window ? " The strip marks the first steady state." : "";
  return [
    chart({ title: "IOPS over what was written", note: `Random writes of 4 KiB, each point a cell.${note}`, xs, lines: [line("IOPS", "s0", "iops")], shades, x, y: { format: plain } }),
    chart({ title: "Response time over what was written", note: `Mean, and the longest of each cell; logarithmic.${note}`, xs,
      lines: [line("mean", "s0", "mean_ns"), line("longest", "s3", "max_ns")], shades, x, y: { format: latency, log: true } })];
}

/** Cells that follow each other, a line for each group. */
function sequence(test, title, note, key, label) {
  const cells = test.cells ?? [];
  if (cells.length < 2) return [];
  const groups = distinct(cells.map((cell) => cell.group));
  const main = groups.filter((group) => !group.startsWith("after"));
  const lines = groups.map((group) => ({ name: group, style: main.includes(group) ? SERIES[main.indexOf(group) % 7] : "s7",
    ys: cells.map((cell) => (cell.group === group ? cell[key] ?? null : null)) }));
  return [chart({ title, note, xs: numbers(cells.length), lines, x: { label, name: label, range: [1, cells.length], format: plain, tell: (number) => `${label} ${number}` },
    y: { format: FORMATS[key], log: key.endsWith("_ns") } })];
}

/** IOPS over the depth, a line for each number of threads; response time over IOPS; the points of demand. */
function ofDemands(test) {
  const cells = test.matrix;
  const depths = distinct(cells.map((cell) => cell.depth)).sort((one, other) => one - other);
  const threads = distinct(cells.map((cell) => cell.threads));
  const at = (number, depth) => cells.find((cell) => cell.threads === number && cell.depth === depth)?.iops ?? null;
  const sorted = [...cells].filter((cell) => cell.iops > 0).sort((one, other) => one.iops - other.iops);
  const points = (test.cells ?? []).map((cell) => [`${cell.group}, ${cell.threads} × ${cell.depth}`, cell]);
  return [
    chart({ title: "Demand variation", note: "IOPS over the depth of each thread.", xs: depths,
      lines: threads.map((number, index) => ({ name: `${number} threads`, style: SERIES[index % SERIES.length], hasPoints: true, ys: depths.map((depth) => at(number, depth)) })),
      x: { label: "depth of each thread (logarithmic)", name: "depth", log: true, range: [depths[0], depths[depths.length - 1]], marks: depths, format: String, tell: (depth) => `depth ${depth}` },
      y: { format: plain } }),
    chart({ title: "Demand intensity", note: "Mean response time over IOPS, a point for each number of threads and depth; logarithmic.", xs: sorted.map((cell) => cell.iops),
      lines: [{ name: "mean response time", style: "s0", isDots: true, hasPoints: true, ys: sorted.map((cell) => cell.mean_ns) }],
      x: { label: "IOPS", name: "IOPS", range: [0, sorted[sorted.length - 1]?.iops ?? 1], format: plain, tell: (rate) => `${plain(rate)} IOPS` }, y: { format: latency, log: true } }),
    ...distributions(points)];
}

const PICTURES = {
  iops: ofIops,
  lat: ofLatency,
  wsat: ofSaturation,
  hir: (test) => sequence(test, "Recovery while the host is idle", "IOPS of each access; the grey ones follow without idleness.", "iops", "access"),
  xsr: (test) => [...sequence(test, "Bandwidth of each stimulus", "A point for each cell.", "bw_bytes", "cell"),
    ...sequence(test, "Mean response time of each stimulus", "A point for each cell, logarithmic.", "mean_ns", "cell")],
  dirth: ofDemands,
  ecw: ofDemands,
};

function show(result) {
  for (const table of document.querySelectorAll("table.heat")) {
    colourCells([...table.querySelectorAll("td")]);
  }
  for (const home of document.querySelectorAll("[data-test]")) {
    const test = result.tests[Number(home.dataset.test)];
    home.append(...attempt(test.title, () => [...(PICTURES[test.test]?.(test) ?? []), ...convergence(test), ...steadyWindow(test)]));
  }
  document.documentElement.dataset.ready = "yes";
}

if (document.querySelector("[data-test]")) {
  unpacked().then(show).catch((error) => {
    const place = document.querySelector("[data-test]");
    place.replaceChildren(element("p", { class: "notice" }, "This browser cannot draw the pictures (" + harmless(error.message) + "). The tables above are complete."));
    document.documentElement.dataset.ready = "no";
  });
}
