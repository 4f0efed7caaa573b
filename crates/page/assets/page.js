// The pictures of a run: its jobs one by one, each when it is opened.

const DIRECTIONS = ["read", "write", "trim", "mixed"];

/** The lower end of a class of latencies, as docs/results.md has it. */
const classBegin = (kind) => (kind < 16 ? 8 * kind : (8 + (kind % 8)) * 2 ** (Math.floor(kind / 8) + 2));

function classOf(nanoseconds) {
  if (nanoseconds < 128) return Math.floor(nanoseconds / 8);
  const power = Math.floor(Math.log2(nanoseconds));
  return 8 * (power - 6) + Math.floor(nanoseconds / 2 ** (power - 3));
}

/** The lists of a series that have a number for each window. */
const NUMBERS = ["ios", "bytes", "iops_min", "iops_max", "bw_min", "bw_max", "ios_asked", "bytes_asked", "clat_sum_ns", "p50_ns", "p99_ns", "p99.9_ns", "max_ns"];

/** Those of them that are added up for all jobs together. */
const SUMMED = ["ios", "bytes", "clat_sum_ns", "ios_asked", "bytes_asked"];

const numberOr = (value, otherwise) => (Number.isFinite(value) ? value : otherwise);

/**
 * The series of a stored report, which may be anything: what is not a number is a gap, and directions that do not fit the windows are left
 * out. `null` = nothing is left.
 */
function soundSeries(series) {
  const ends = Array.isArray(series.end_us) ? series.end_us : [];
  if (!ends.length || !ends.every((end, index) => Number.isFinite(end) && (index === 0 || end > ends[index - 1]))) return null;
  const sound = (entry) => {
    const fits = Array.isArray(entry?.ios) && Number.isInteger(entry.first_window) && entry.first_window >= 0 && entry.first_window + entry.ios.length <= ends.length;
    if (!fits || !entry.ios.length) return null;
    const made = { first_window: entry.first_window, ramp_windows: Math.min(entry.ios.length, Math.max(0, Math.trunc(numberOr(entry.ramp_windows, 0)))) };
    for (const key of NUMBERS.filter((one) => Array.isArray(entry[one]))) made[key] = entry.ios.map((_, index) => numberOr(entry[key][index], null));
    made.bytes ??= entry.ios.map(() => null);
    if (Array.isArray(entry.clat_classes)) made.clat_classes = entry.ios.map((_, index) => (Array.isArray(entry.clat_classes[index]) ? entry.clat_classes[index] : []));
    const isOne = (keys) => keys.every((key) => made[key]);
    for (const keys of [["iops_min", "iops_max"], ["bw_min", "bw_max"], ["p50_ns", "p99_ns", "p99.9_ns", "max_ns"]]) {
      if (!isOne(keys)) keys.forEach((key) => delete made[key]);
    }
    return made;
  };
  const jobs = (Array.isArray(series.jobs) ? series.jobs : []).map((entry) => {
    const found = DIRECTIONS.map((direction) => [direction, sound(entry?.[direction])]).filter(([, one]) => one);
    return { job: entry?.job, depth: entry?.depth > 0 ? entry.depth : Infinity, ...Object.fromEntries(found) };
  });
  const begin = numberOr(series.begin_us, 0);
  return jobs.length ? { sample_us: numberOr(series.sample_us, 0), begin_us: begin < ends[0] ? begin : ends[0] - 1, end_us: ends, jobs } : null;
}

/**
 * One direction of one job over time, or of all jobs together. `isWhole`: the windows in which it ran all the time, so that they have
 * rates: not the first and the last, nor those beside a gap. `isTold`: those that the words look at: not the ramp either.
 */
function overTime(series, entry) {
  const begins = [series.begin_us, ...series.end_us.slice(0, -1)];
  const count = entry.ios.length;
  const place = entry.first_window;
  const edges = begins.slice(place, place + count).concat(series.end_us[place + count - 1]);
  const spans = entry.ios.map((_, index) => Math.max(1, edges[index + 1] - edges[index]) / 1e6);
  const isGap = (index) => (entry.ios[index] ?? null) === null;
  let isWhole = entry.ios.map((_, index) => !isGap(index) && !isGap(index - 1) && !isGap(index + 1));
  // For such a short run, there is nothing else to show.
  if (isWhole.filter((whole) => whole).length < 2) isWhole = entry.ios.map((_, index) => !isGap(index));
  const ramp = entry.ramp_windows ?? 0;
  const isTold = isWhole.map((whole, index) => whole && (ramp === 0 || index > ramp));
  return { ...entry, edges, spans, isWhole, isTold };
}

/** The series of all jobs together: sums for each window. Percentiles cannot be added. */
function together(series) {
  const sums = {};
  for (const job of series.jobs) {
    for (const direction of DIRECTIONS) {
      const entry = job[direction];
      if (!entry) continue;
      const sum = (sums[direction] ??= { ios: [], bytes: [], clat_sum_ns: [], ios_asked: [], bytes_asked: [], from: Infinity, to: 0, steady: [] });
      sum.from = Math.min(sum.from, entry.first_window);
      sum.to = Math.max(sum.to, entry.first_window + entry.ios.length);
      entry.ios.forEach((_, index) => {
        const at = entry.first_window + index;
        // If all of them are expected to be idle, the sum has a gap as well.
        if ((entry.ios[index] ?? null) === null) return;
        for (const key of SUMMED) sum[key][at] = (sum[key][at] ?? 0) + (entry[key]?.[index] ?? 0);
        if (index >= (entry.ramp_windows ?? 0)) sum.steady[at] = true;
      });
    }
  }
  for (const [direction, sum] of Object.entries(sums)) {
    for (const key of SUMMED) sum[key] = Array.from({ length: sum.to - sum.from }, (_, index) => sum[key][sum.from + index] ?? null);
    sum.first_window = sum.from;
    // A sum of what only some jobs were asked for would stand beside what all have given.
    for (const key of ["ios_asked", "bytes_asked"]) if (!series.jobs.every((job) => !job[direction] || job[direction][key])) delete sum[key];
    // All of them are still in their ramps.
    const behind = sum.ios.findIndex((_, index) => sum.steady[sum.from + index]);
    sum.ramp_windows = behind < 0 ? sum.ios.length : behind;
    // Windows as long as samples have one rate; extremes of sums are in none of the longer ones.
    const spans = overTime(series, sum).spans;
    if (spans.every((span) => span * 1e6 < 1.5 * series.sample_us)) {
      sum.iops_min = sum.iops_max = sum.ios.map((ios, index) => (ios === null ? null : ios / spans[index]));
    }
  }
  return { ...sums, depth: series.jobs.reduce((sum, job) => sum + (job.depth ?? Infinity), 0) };
}

/** Formats a latency that may be the largest one that is kept: all those from 16.9 s on are the same. */
const latencyAtMost = (value) => (value >= 16.9e9 ? "17 s or more" : latency(value));

/** The class of latencies that has no end. */
const LAST_CLASS = 231;

/** The pairs (class, share) of a window. */
function sharesOf(list) {
  const pairs = [];
  let total = 0;
  for (let place = 0; place + 1 < (list?.length ?? 0); place += 2) {
    const [kind, count] = [list[place], list[place + 1]];
    if (!Number.isInteger(kind) || kind < 0 || kind > LAST_CLASS || !(count > 0)) continue;
    pairs.push([kind, count]);
    total += count;
  }
  return pairs.map(([kind, count]) => [kind, count / total]);
}

/**
 * I/Os in flight on average in each window. An I/O was in flight before it was completed: where latencies are as long as windows, they
 * belong to the windows before, too. Without classes of latency nobody knows which, and such windows have no depth. More than `most` are
 * never in flight: what exceeds that in a window was in flight in the one before.
 */
function depths(one, most) {
  const sums = one.spans.map(() => 0);
  const isUnknown = one.spans.map((_, index) => !one.isWhole[index] || index === (one.ramp_windows ?? 0) - 1);
  one.spans.forEach((span, index) => {
    const nanoseconds = span * 1e9;
    const largest = one.max_ns?.[index] ?? 0;
    const whole = one.clat_sum_ns[index] ?? 0;
    if (largest <= nanoseconds) {
      sums[index] += whole;
      return;
    }
    const ios = one.ios[index] ?? 0;
    for (const [kind, share] of sharesOf(one.clat_classes?.[index])) {
      let rest = ((classBegin(kind) + classBegin(kind + 1)) / 2);
      // On average it was completed in the middle of the window.
      for (let at = index, room = nanoseconds / 2; at >= 0 && rest > 0; at -= 1, room = at >= 0 ? one.spans[at] * 1e9 : 0) {
        const part = rest > nanoseconds || at < index ? Math.min(rest, room) : rest;
        sums[at] += part * share * ios;
        rest -= part;
      }
    }
    if (!one.clat_classes) isUnknown[index] = true;
  });
  for (let index = sums.length - 1; index >= 0; index -= 1) {
    const excess = Math.max(0, sums[index] - most * one.spans[index] * 1e9);
    sums[index] -= excess;
    if (index > 0) sums[index - 1] += excess;
  }
  return sums.map((sum, index) => (isUnknown[index] ? null : sum / 1e9 / one.spans[index]));
}

/** When the run was in its steady state, in microseconds from its start, if it was looked for and found. */
function steadyState(job, series) {
  const state = job?.steadystate;
  if (!state || state.attained !== 1 || !(state.duration > 0)) return null;
  const end = series.end_us[series.end_us.length - 1];
  return [end - state.duration * 1e6, end];
}

/** Pictures over time, for the directions of a job. `job`: its part of the report; `replaced`: pictures that come from its logs. */
function timePictures(series, entries, job, replaced = new Set()) {
  const found = DIRECTIONS.filter((direction) => entries[direction]).map((direction) => ({ direction, ...overTime(series, entries[direction]) }));
  if (!found.length) return [];
  const from = Math.min(...found.map((one) => one.first_window));
  const to = Math.max(...found.map((one) => one.first_window + one.ios.length));
  const begins = [series.begin_us, ...series.end_us];
  const origin = begins[from];
  const edges = begins.slice(from, to + 1).map((time) => (time - origin) / 1e6);
  const xs = edges.slice(1).map((end, index) => (edges[index] + end) / 2);
  const range = [edges[0], edges[edges.length - 1]];
  const spread = (one, value) => xs.map((_, index) => {
    const at = from + index - one.first_window;
    return at >= 0 && at < one.ios.length && (one.ios[at] ?? null) !== null ? value(at) : null;
  });
  const shades = [];
  const ramp = Math.max(...found.map((one) => (one.ramp_windows > 0 ? one.first_window + one.ramp_windows : 0)));
  if (ramp > from) shades.push([edges[0], edges[ramp - from], "ramp"]);
  for (const one of found) {
    if (!one.iops_min) continue;
    // The same windows and limits as in the words (steadiness.rs).
    const rates = one.ios.map((ios, index) => ios / one.spans[index]).filter((_, index) => one.isTold[index]).sort((a, b) => a - b);
    const middle = rates[Math.floor(rates.length / 2)];
    one.iops_min.forEach((least, index) => {
      if (one.isTold[index] && least < middle * 0.05 && middle * series.sample_us >= 50e6) {
        const at = one.first_window + index - from;
        shades.push([edges[at], edges[at + 1], "stall"]);
      }
    });
  }
  const steady = steadyState(job, series);
  if (steady) shades.push([...steady.map((time) => (time - origin) / 1e6), "steadystate"]);
  const isMarked = (style) => shades.some((shade) => shade[2] === style);
  const marks = (isMarked("ramp") ? " The grey part is the ramp." : "") +
    (isMarked("stall") ? " Red marks: nearly nothing moved for a moment." : "") +
    (isMarked("steadystate") ? " The green strip above: the steady state." : "");
  const coarse = found.some((one) => one.iops_min && one.iops_min.some((least, index) => least !== one.iops_max[index]));
  const x = timeAxis(range);
  const spans = xs.map((_, index) => edges[index + 1] - edges[index]).sort((a, b) => a - b);
  const window = `Windows of ${seconds(+spans[Math.floor(spans.length / 2)].toPrecision(2))}.`;
  const extremes = coarse ? ` The pale band has the extremes of samples of ${seconds(series.sample_us / 1e6)}.` : "";
  const rateLines = (amounts, lows, highs) => found.map((one) => ({
    name: one.direction, style: one.direction,
    ys: spread(one, (at) => (one.isWhole[at] ? one[amounts][at] / one.spans[at] : null)),
    ...(coarse && one[lows] ? { lows: spread(one, (at) => (one.isWhole[at] ? one[lows][at] : null)), highs: spread(one, (at) => (one.isWhole[at] ? one[highs][at] : null)) } : {}),
  }));
  // What a schedule of rates asked for, beside what was given.
  const askedLines = (amounts) => found.filter((one) => one[amounts]).map((one) => ({
    name: `${one.direction}: asked`, style: "asked", ys: spread(one, (at) => (one.isWhole[at] ? one[amounts][at] / one.spans[at] : null)),
  }));
  const beside = (amounts) => (found.some((one) => one[amounts]) ? " The dotted line is what rate_schedule asked for." : "");
  const parts = found.some((one) => one.isWhole.includes(false)) ? " Windows in which it ran only for a part are left out." : "";
  const pictures = [];
  if (!replaced.has("iops")) {
    pictures.push(chart({ title: "IOPS over time", note: `I/Os per second. ${window}${beside("ios_asked")}${extremes}${marks}${parts}`, xs, shades, x,
      y: { format: plain }, lines: [...rateLines("ios", "iops_min", "iops_max"), ...askedLines("ios_asked")] }));
  }
  if (!replaced.has("bw")) {
    pictures.push(chart({ title: "Bandwidth over time", note: `Bytes per second. ${window}${beside("bytes_asked")}${extremes}${marks}${parts}`, xs, shades, x,
      y: { format: bandwidth, binary: true }, lines: [...rateLines("bytes", "bw_min", "bw_max"), ...askedLines("bytes_asked")] }));
  }
  const sizes = found.map((one) => ({ name: one.direction, style: one.direction, ys: spread(one, (at) => (one.ios[at] > 0 ? one.bytes[at] / one.ios[at] : null)) }));
  const known = sizes.flatMap((line) => line.ys).filter((size) => size !== null);
  if (known.some((size) => Math.abs(size - known[0]) > 0.001 * known[0])) {
    pictures.push(chart({ title: "I/O size over time", note: `Bytes per I/O on average. ${window}${marks}`, xs, shades, x, y: { format: amount, binary: true }, lines: sizes }));
  }
  const percentiles = [["p50_ns", "p50", "p50"], ["p99_ns", "p99", "p99"], ["p99.9_ns", "p99.9", "p999"], ["max_ns", "max", "max"]];
  for (const one of found.filter((one) => one.p50_ns && !replaced.has("latency"))) {
    const values = (key) => spread(one, (at) => (one.ios[at] > 0 && one[key][at] > 0 ? one[key][at] : null));
    pictures.push(chart({ title: `Latency over time: ${one.direction}`, note: `Completion latency, logarithmic: from below, p50, p99, p99.9 and the largest. ${window}${marks}`, xs, shades, x,
      y: { format: latency, tell: latencyAtMost, log: true }, lines: percentiles.map(([key, name, style]) => ({ name, style, ys: values(key) })) }));
    const columns = xs.map((_, index) => sharesOf(one.clat_classes?.[from + index - one.first_window]));
    if (columns.length > 2) {
      const map = heatMap({ title: `Latency heat map: ${one.direction}`, note: `Each column is a window; the brighter, the more of its I/Os had that latency.${marks}`,
        edges, columns, begin: classBegin, x, y: { format: latencyAtMost }, head: [x.name, "latency from", "to", "share"], shades,
        rows: () => columns.flatMap((column, index) => column.map(([kind, share]) =>
          [x.tell(xs[index]), latency(classBegin(kind)), kind < LAST_CLASS ? latency(classBegin(kind + 1)) : "any", percent(100 * share)])) });
      if (map) pictures.push(map);
    }
  }
  if (found.some((one) => one.clat_sum_ns?.some((sum) => sum > 0))) {
    pictures.push(chart({ title: "Depth over time", note: `I/Os in flight on average, from rate and completion latency (Little's law). ${window}${marks}${parts}`, xs, shades, x,
      y: { format: plain }, lines: found.filter((one) => one.clat_sum_ns).map((one) => {
        const values = depths(one, entries.depth ?? Infinity);
        return { name: one.direction, style: one.direction, ys: spread(one, (at) => values[at]) };
      }) }));
  }
  return pictures;
}

/** The latency that has a distribution: completion latency, unless only total latency has. */
function distribution(part) {
  return ["clat_ns", "lat_ns"].map((key) => part?.[key]).find((found) => found?.percentile) ?? null;
}

/** How latencies are distributed over the whole run. */
function latencyPictures(job) {
  const found = DIRECTIONS.filter((direction) => distribution(job[direction])).map((direction) => [direction, distribution(job[direction])]);
  if (!found.length) return [];
  const pictures = [];
  if (found.every(([, one]) => Object.values(one.bins ?? {}).some((count) => count > 0))) {
    const classes = found.map(([, one]) => {
      const counts = new Map();
      for (const [middle, count] of Object.entries(one.bins)) {
        if (+middle >= 0 && Number.isFinite(+middle) && count > 0) counts.set(classOf(+middle), (counts.get(classOf(+middle)) ?? 0) + count);
      }
      return counts;
    });
    const kinds = classes.flatMap((counts) => [...counts.keys()]);
    const first = Math.min(...kinds) - 1;
    const all = Array.from({ length: Math.min(LAST_CLASS, Math.max(...kinds)) - first + 2 }, (_, index) => first + index).filter((kind) => kind >= 0);
    const middle = (kind) => Math.max(1, (classBegin(kind) + classBegin(kind + 1)) / 2);
    const lines = found.map(([direction, one], place) => {
      const total = one.N > 0 ? one.N : [...classes[place].values()].reduce((sum, count) => sum + count, 0);
      const ys = all.map((kind) => (100 * (classes[place].get(kind) ?? 0)) / Math.max(1, total));
      return { name: direction, style: direction, ys, lows: ys.map(() => 0), highs: ys };
    });
    pictures.push(chart({ title: "Latency distribution", note: "Share of I/Os in each class of latency; eight classes for each power of two.",
      xs: all.map(middle), lines, x: { label: "latency (logarithmic)", name: "latency about", log: true, format: latency, tell: latency }, y: { format: percent } }));
  }
  const asked = Object.keys(found[0][1].percentile).map(Number).filter((percentile) => percentile >= 0 && percentile <= 100);
  if (!asked.length) return pictures;
  const value = (one, percentile) => numberOr(one.percentile[percentile.toFixed(6)], null);
  pictures.push(chart({ ...ofPercentiles(asked.map(nines)),
    lines: found.map(([direction, one]) => ({ name: direction, style: direction, ys: asked.map((percentile) => value(one, percentile)) })) }));
  return pictures;
}

/** CPU and depth of a job. */
function usagePictures(job) {
  const pictures = [];
  if (Object.values(job.iodepth_level ?? {}).some((share) => share > 0)) {
    pictures.push(barChart({ title: "Depth", note: "Share of the I/Os that were issued when so many were in flight.", label: "I/Os in flight",
      names: Object.keys(job.iodepth_level), bars: [{ name: "share", style: "read", values: Object.values(job.iodepth_level) }] }));
  }
  if (job.usr_cpu !== undefined) {
    pictures.push(barChart({ title: "CPU", note: "Time on a processor, in percent of the run time.", label: "mode", names: ["user", "system"],
      bars: [{ name: "share", style: "read", values: [job.usr_cpu, job.sys_cpu] }] }));
  }
  return pictures;
}

/** Every figure of a job in the report. */
function figures(job) {
  const tables = [];
  const found = DIRECTIONS.filter((direction) => ["total_ios", "short_ios", "drop_ios"].some((key) => job[direction]?.[key] > 0));
  if (found.length) {
    const rows = [["I/Os", "total_ios", plain], ["short", "short_ios", plain], ["dropped", "drop_ios", plain], ["data", "io_bytes", amount], ["run time", "runtime", (value) => seconds(value / 1000)],
      ["bandwidth", "bw_bytes", bandwidth], ["least sample", "bw_min", (value) => bandwidth(value * 1024)], ["largest sample", "bw_max", (value) => bandwidth(value * 1024)],
      ["mean of samples", "bw_mean", (value) => bandwidth(value * 1024)], ["deviation of samples", "bw_dev", (value) => bandwidth(value * 1024)], ["IOPS", "iops", plain],
      ["least sample of IOPS", "iops_min", plain], ["largest sample of IOPS", "iops_max", plain], ["mean of IOPS samples", "iops_mean", plain], ["deviation of IOPS samples", "iops_stddev", plain]]
      .filter(([, key]) => found.some((direction) => job[direction][key] !== undefined));
    tables.push(table("Amounts and rates", ["", ...found], rows.map(([name, key, format]) => [name, ...found.map((direction) => format(job[direction][key] ?? 0))])));
    const kinds = [["slat_ns", "submission"], ["clat_ns", "completion"], ["lat_ns", "total"], ["lat_from_intended_start_ns", "from the intended start"], ["ttfb_ns", "to the first byte"]];
    const latencies = found.flatMap((direction) => kinds.filter(([key]) => job[direction][key]?.N > 0).map(([key, name]) => {
      const one = job[direction][key];
      return [`${direction}: ${name}`, plain(one.N), ...[one.min, one.mean, one.stddev, one.max].map(latency)];
    }));
    if (job.sync?.lat_ns?.N > 0) {
      const one = job.sync.lat_ns;
      latencies.push(["sync", plain(one.N), ...[one.min, one.mean, one.stddev, one.max].map(latency)]);
    }
    if (latencies.length) tables.push(table("Latencies", ["", "measured", "least", "mean", "deviation", "largest"], latencies));
    const shown = found.map((direction) => [direction, distribution(job[direction])]).filter(([, one]) => one);
    if (job.sync?.lat_ns?.percentile) shown.push(["sync", job.sync.lat_ns]);
    if (shown.length) {
      const asked = Object.keys(shown[0][1].percentile);
      tables.push(table("Percentiles", ["percentile", ...shown.map(([direction]) => direction)],
        asked.map((key) => ["p" + +key, ...shown.map(([, one]) => (one.percentile[key] === undefined ? "–" : latency(one.percentile[key])))])));
    }
  }
  const classes = [["latency_ns", "ns"], ["latency_us", "µs"], ["latency_ms", "ms"]].flatMap(([key, unit]) =>
    Object.entries(job[key] ?? {}).filter(([, share]) => share > 0).map(([limit, share]) => [`${limit.startsWith(">=") ? "at least " + limit.slice(2) : "below " + limit} ${unit}`, percent(share)]));
  if (classes.length) tables.push(table("Classes of latency", ["", "share of I/Os"], classes));
  const usage = [["job_runtime", "run time of all workers", (value) => seconds(value / 1000)], ["usr_cpu", "user CPU", percent], ["sys_cpu", "system CPU", percent], ["ctx", "context switches", plain],
    ["majf", "major faults", plain], ["minf", "minor faults", plain], ["total_err", "errors after which it went on", plain]].filter(([key]) => job[key] !== undefined);
  if (usage.length) tables.push(table("Processor and memory", ["", "value"], usage.map(([key, name, format]) => [name, format(job[key])])));
  const batches = ["iodepth_level", "iodepth_submit", "iodepth_complete"].filter((key) => job[key]);
  if (batches.length) {
    const names = { iodepth_level: "in flight", iodepth_submit: "in a submission", iodepth_complete: "in a completion" };
    tables.push(table("Depth and batches", ["I/Os", ...batches.map((key) => names[key])],
      [...new Set(batches.flatMap((key) => Object.keys(job[key])))].sort((a, b) => (Number(a) || (a === "0" ? 0 : Infinity)) - (Number(b) || (b === "0" ? 0 : Infinity))).map((size) => [size, ...batches.map((key) => (job[key][size] === undefined ? "–" : percent(job[key][size])))])));
  }
  const rest = remaining(job, (path) => FIGURES.some((known) => known.test(path)));
  if (rest.length) tables.push(table("Other figures", ["", "value"], rest));
  return tables;
}

/** Keys of a job that appear in the tables above, in the pictures or in the first part of the page. */
const FIGURES = [/^(jobname|groupid|job_start|error|elapsed|eta|job options)(\.|$)/, /^(job_runtime|usr_cpu|sys_cpu|ctx|majf|minf|total_err)$/,
  /^iodepth_(level|submit|complete)\./, /^latency_(ns|us|ms)\./, /\.(bins|percentile)\./, /\.(slat|clat|lat|lat_from_intended_start|ttfb)_ns\.(min|max|mean|stddev|N)$/,
  /^(read|write|trim|mixed)\.(total_ios|short_ios|drop_ios|io_bytes|io_kbytes|runtime|bw|bw_bytes|bw_min|bw_max|bw_mean|bw_dev|iops|iops_min|iops_max|iops_mean|iops_stddev)$/];

/** Tables with more rows are not for people. */
const MOST_ROWS_OF_REST = 400;

/** All other keys, in rows of a path and a value; zeros and empty values are left out. */
function remaining(value, isKnown) {
  const rows = [];
  const walk = (path, one) => {
    if (path && isKnown(path + (one !== null && typeof one === "object" ? "." : ""))) return;
    if (one !== null && typeof one === "object") {
      for (const [key, inner] of Object.entries(one)) walk(path ? `${path}.${key}` : key, inner);
    } else if (one !== 0 && one !== null && one !== "") {
      rows.push([shortened(path), shortened(one)]);
    }
  };
  walk("", value);
  const more = rows.length - MOST_ROWS_OF_REST;
  return more > 0 ? [...rows.slice(0, MOST_ROWS_OF_REST), [`and ${more} more`, "–"]] : rows;
}

function options(name, values) {
  const text = Object.entries(values ?? {}).map(([key, value]) => harmless(value === "" ? key : `${key}=${value}`)).join("\n");
  return text ? [element("details", {}, element("summary", {}, name), element("pre", {}, text))] : [];
}

function fill(place, parts) {
  const pictures = parts.pictures.length ? [element("div", { class: "pictures" }, ...parts.pictures)] : [];
  place.append(...pictures, ...(parts.rest ?? []));
}

function show(report) {
  const list = (value) => (Array.isArray(value) ? value : []);
  const jobs = Array.isArray(report?.jobs) ? report.jobs : list(report?.client_stats).filter((job) => job?.jobname !== "All clients");
  const series = report?.iolite?.series ? soundSeries(report.iolite.series) : null;
  const of = (position) => series?.jobs.find((entry) => entry.job === position);
  const logs = soundLogs(report?.iolite?.logs);
  const logsOf = (position) => logs.filter((log) => log.job === position);
  const home = document.getElementById("pictures");
  const openers = [];
  const section = (title, open, parts) => {
    const details = element("details", { class: "job" }, element("summary", {}, title));
    const build = () => {
      if (details.children.length === 1) details.append(...attempt("This part", () => (fill(details, parts()), [])));
    };
    details.addEventListener("toggle", () => details.open && build());
    openers.push(() => {
      details.open = true;
      build();
    });
    home.append(details);
    if (open) openers[openers.length - 1]();
  };
  const many = jobs.length > 1 && series?.jobs.length > 1;
  if (many) {
    section("All jobs together", true, () => ({
      pictures: attempt("The series", () => timePictures(series, together(series))),
      rest: [element("p", { class: "hint" }, "Sums of the jobs. Each job has its own latencies over time; those of the whole run are in the table of the answer, if all jobs have histograms (json+).")],
    }));
  }
  const shared = logs.filter((log) => log.job === null || log.job >= jobs.length);
  if (shared.length) section("Logs of several jobs", !many, () => ({ pictures: attempt("Logs", () => logPictures(shared)) }));
  jobs.forEach((given, position) => {
    const job = given !== null && typeof given === "object" ? given : {};
    section(`${jobs.length > 1 ? position + 1 + ". " : ""}${shortened(job.jobname ?? "(without a name)")}`, position === 0 && (!many || jobs.length < 3), () => ({
      pictures: [...attempt("Logs", () => logPictures(logsOf(position))),
        ...attempt("The series", () => (of(position) ? timePictures(series, of(position), job, replacedBy(logsOf(position))) : [])),
        ...attempt("The distribution of latency", () => latencyPictures(job)), ...attempt("CPU and depth", () => usagePictures(job))],
      rest: [element("h3", {}, "Every figure"), element("div", { class: "tables" }, ...attempt("Figures", () => figures(job))),
        ...attempt("Options", () => options("Options of this job", job["job options"]))],
    }));
  });
  home.after(...attempt("What else the report has", () => others(report)));
  document.documentElement.dataset.ready = "yes";
  addEventListener("beforeprint", () => {
    if (jobs.length <= 20) openers.forEach((opener) => opener());
    drawAll();
  });
}

/** Keys of a job that are shown above, or in a separate part. */
const TOLD_ABOVE = /^(jobs|client_stats|disk_util|global options|fio version|iolite version|timestamp|timestamp_ms|time|iolite\.(status|status_reason|host|targets|series|logs|warnings))(\.|$)/;

/** The most rows of disks, with the heading, that are shown as columns. */
const MOST_DISKS_BESIDE = 4;

/** The parts below the jobs: disks, and other keys of a report. */
function others(report) {
  const parts = [];
  const rest = remaining(report, (path) => TOLD_ABOVE.test(path));
  if (rest.length) parts.push(element("h2", {}, "Other figures"), table("What else the report has", ["", "value"], rest));
  if (Array.isArray(report.disk_util) && report.disk_util.length) {
    const heading = element("h2", {}, "Disks");
    const columns = [["read_ios", "reads", plain], ["write_ios", "writes", plain], ["read_sectors", "read", (value) => amount(value * 512)], ["write_sectors", "written", (value) => amount(value * 512)],
      ["read_merges", "merged reads", plain], ["write_merges", "merged writes", plain], ["read_ticks", "time of reads", (value) => seconds(value / 1000)], ["write_ticks", "time of writes", (value) => seconds(value / 1000)],
      ["in_queue", "time in queue", (value) => seconds(value / 1000)], ["util", "busy", percent],
      ["aggr_read_ios", "reads of its parts", plain], ["aggr_write_ios", "writes of its parts", plain], ["aggr_read_merges", "merged reads of its parts", plain],
      ["aggr_write_merges", "merged writes of its parts", plain], ["aggr_read_ticks", "time of its parts' reads", (value) => seconds(value / 1000)],
      ["aggr_write_ticks", "time of its parts' writes", (value) => seconds(value / 1000)], ["aggr_in_queue", "time in its parts' queues", (value) => seconds(value / 1000)],
      ["aggr_util", "busiest part", percent]];
    const shown = columns.filter(([key]) => report.disk_util.some((disk) => disk?.[key] !== undefined));
    const rows = [["disk", ...shown.map(([, name]) => name)],
      ...report.disk_util.map((disk) => [shortened(disk?.name ?? "–"), ...shown.map(([key, , format]) => (disk?.[key] === undefined ? "–" : format(disk[key])))])];
    // A few disks are columns, which fit beside each other; many are rows.
    const [head, ...body] = rows.length <= MOST_DISKS_BESIDE ? rows[0].map((_, place) => rows.map((row) => row[place])) : rows;
    parts.unshift(heading, table("What the disks below the files did meanwhile", head, body));
  }
  return parts;
}
