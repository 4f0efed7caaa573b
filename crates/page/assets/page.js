// The pictures of a run: its jobs one by one, each when it is opened.

const DIRECTIONS = ["read", "write", "trim", "mixed"];

/** The lower end of a class of latencies, as docs/results.md has it. */
const classBegin = (kind) => (kind < 16 ? 8 * kind : (8 + (kind % 8)) * 2 ** (Math.floor(kind / 8) + 2));

function classOf(nanoseconds) {
  if (nanoseconds < 128) return Math.floor(nanoseconds / 8);
  const power = Math.floor(Math.log2(nanoseconds));
  return 8 * (power - 6) + Math.floor(nanoseconds / 2 ** (power - 3));
}

async function unpacked() {
  const text = document.getElementById("data").textContent.trim();
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** One direction of one job over time, or of all jobs together. */
function overTime(series, entry) {
  const begins = [series.begin_us, ...series.end_us.slice(0, -1)];
  const count = entry.ios.length;
  const place = entry.first_window;
  const edges = begins.slice(place, place + count).concat(series.end_us[place + count - 1]);
  const spans = entry.ios.map((_, index) => Math.max(1, edges[index + 1] - edges[index]) / 1e6);
  return { ...entry, edges, spans };
}

/** The series of all jobs together: sums for each window. Percentiles cannot be added. */
function together(series) {
  const sums = {};
  for (const job of series.jobs) {
    for (const direction of DIRECTIONS) {
      const entry = job[direction];
      if (!entry) continue;
      const sum = (sums[direction] ??= { ios: [], bytes: [], clat_sum_ns: [], from: Infinity, to: 0 });
      sum.from = Math.min(sum.from, entry.first_window);
      sum.to = Math.max(sum.to, entry.first_window + entry.ios.length);
      entry.ios.forEach((_, index) => {
        const at = entry.first_window + index;
        for (const key of ["ios", "bytes", "clat_sum_ns"]) sum[key][at] = (sum[key][at] ?? 0) + (entry[key]?.[index] ?? 0);
      });
    }
  }
  for (const sum of Object.values(sums)) {
    for (const key of ["ios", "bytes", "clat_sum_ns"]) sum[key] = Array.from({ length: sum.to - sum.from }, (_, index) => sum[key][sum.from + index] ?? 0);
    sum.first_window = sum.from;
    sum.ramp_windows = 0;
  }
  return sums;
}

/** Pictures over time, of the directions that a job has. */
function timePictures(series, entries) {
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
    return at >= 0 && at < one.ios.length ? value(at) : null;
  });
  const shades = [];
  const ramp = Math.max(...found.map((one) => (one.ramp_windows > 0 ? one.first_window + one.ramp_windows : 0)));
  if (ramp > from) shades.push([edges[0], edges[ramp - from], "ramp"]);
  for (const one of found) {
    if (!one.iops_min) continue;
    const rates = one.ios.map((ios, index) => ios / one.spans[index]).sort((a, b) => a - b);
    const middle = rates[Math.floor(rates.length / 2)];
    one.iops_min.forEach((least, index) => {
      const inside = index > 0 && index < one.ios.length - 1;
      if (inside && least < middle * 0.05 && middle * series.sample_us >= 50e6) {
        const at = one.first_window + index - from;
        shades.push([edges[at], edges[at + 1], "stall"]);
      }
    });
  }
  const marks = (shades.some((shade) => shade[2] === "ramp") ? " The grey part is the ramp." : "") +
    (shades.some((shade) => shade[2] === "stall") ? " Red marks: nearly nothing moved for a moment." : "");
  const coarse = found.some((one) => one.iops_min && one.iops_min.some((least, index) => least !== one.iops_max[index]));
  const x = { label: "time (s)", name: "seconds", range, format: seconds, tell: seconds };
  const spans = xs.map((_, index) => edges[index + 1] - edges[index]).sort((a, b) => a - b);
  const window = `Windows of ${seconds(+spans[Math.floor(spans.length / 2)].toPrecision(2))}.`;
  const extremes = coarse ? ` The pale band has the extremes of samples of ${seconds(series.sample_us / 1e6)}.` : "";
  const rateLines = (amounts, lows, highs) => found.map((one) => ({
    name: one.direction, style: one.direction,
    ys: spread(one, (at) => one[amounts][at] / one.spans[at]),
    ...(coarse && one[lows] ? { lows: spread(one, (at) => one[lows][at]), highs: spread(one, (at) => one[highs][at]) } : {}),
  }));
  const pictures = [
    chart({ title: "IOPS over time", note: `I/Os per second. ${window}${extremes}${marks}`, xs, shades, x,
      y: { format: plain }, lines: rateLines("ios", "iops_min", "iops_max") }),
    chart({ title: "Bandwidth over time", note: `Bytes per second. ${window}${extremes}`, xs, shades, x,
      y: { format: bandwidth, binary: true }, lines: rateLines("bytes", "bw_min", "bw_max") }),
  ];
  const percentiles = [["p50_ns", "p50", "p50"], ["p99_ns", "p99", "p99"], ["p99.9_ns", "p99.9", "p999"], ["max_ns", "max", "max"]];
  for (const one of found.filter((one) => one.p50_ns)) {
    const values = (key) => spread(one, (at) => (one.ios[at] > 0 && one[key][at] > 0 ? one[key][at] : null));
    pictures.push(chart({ title: `Latency over time: ${one.direction}`, note: `Completion latency, logarithmic: from below, p50, p99, p99.9 and the largest. ${window}`, xs, shades, x,
      y: { format: latency, log: true }, lines: percentiles.map(([key, name, style]) => ({ name, style, ys: values(key) })) }));
    const columns = xs.map((_, index) => {
      const list = one.clat_classes[from + index - one.first_window] ?? [];
      let total = 0;
      for (let place = 1; place < list.length; place += 2) total += list[place];
      const pairs = [];
      for (let place = 0; place < list.length; place += 2) pairs.push([list[place], list[place + 1] / total]);
      return pairs;
    });
    if (columns.length > 2) {
      pictures.push(heatMap({ title: `Latency heat map: ${one.direction}`, note: "Each column is a window; the brighter, the more of its I/Os had that latency.",
        edges, columns, begin: classBegin, x, y: { format: latency }, head: ["seconds", "latency from", "to", "share"],
        rows: () => columns.flatMap((column, index) => column.map(([kind, share]) =>
          [seconds(xs[index]), latency(classBegin(kind)), latency(classBegin(kind + 1)), percent(100 * share)])) }));
    }
  }
  if (found.some((one) => one.clat_sum_ns?.some((sum) => sum > 0))) {
    pictures.push(chart({ title: "Depth over time", note: `I/Os in flight on average, from rate and completion latency (Little's law). ${window}`, xs, shades, x,
      y: { format: plain }, lines: found.filter((one) => one.clat_sum_ns).map((one) => ({ name: one.direction, style: one.direction,
        ys: spread(one, (at) => one.clat_sum_ns[at] / 1e9 / one.spans[at]) })) }));
  }
  return pictures;
}

/** The latency that has a distribution: completion latency, unless only total latency has. */
function distribution(part) {
  return ["clat_ns", "lat_ns"].map((key) => part?.[key]).find((found) => found?.percentile) ?? null;
}

const nines = (percentile) => -Math.log10(1 - Math.min(percentile, 99.99999) / 100);

/** How latencies are distributed over the whole run. */
function latencyPictures(job) {
  const found = DIRECTIONS.filter((direction) => distribution(job[direction])).map((direction) => [direction, distribution(job[direction])]);
  if (!found.length) return [];
  const pictures = [];
  if (found.every(([, one]) => one.bins)) {
    const classes = found.map(([, one]) => {
      const counts = new Map();
      for (const [middle, count] of Object.entries(one.bins)) counts.set(classOf(+middle), (counts.get(classOf(+middle)) ?? 0) + count);
      return counts;
    });
    const kinds = classes.flatMap((counts) => [...counts.keys()]);
    const first = Math.min(...kinds) - 1;
    const all = Array.from({ length: Math.max(...kinds) - first + 2 }, (_, index) => first + index).filter((kind) => kind >= 0);
    const middle = (kind) => Math.max(1, (classBegin(kind) + classBegin(kind + 1)) / 2);
    const lines = found.map(([direction, one], place) => {
      const ys = all.map((kind) => (100 * (classes[place].get(kind) ?? 0)) / one.N);
      return { name: direction, style: direction, ys, lows: ys.map(() => 0), highs: ys };
    });
    pictures.push(chart({ title: "Latency distribution", note: "Share of I/Os in each class of latency; eight classes for each power of two.",
      xs: all.map(middle), lines, x: { label: "latency (logarithmic)", name: "latency about", log: true, format: latency, tell: latency }, y: { format: percent } }));
  }
  const asked = Object.keys(found[0][1].percentile).map(Number);
  const value = (one, percentile) => one.percentile[percentile.toFixed(6)] ?? null;
  const marks = [0, 90, 99, 99.9, 99.99, 99.999].filter((mark) => mark <= Math.max(90, ...asked)).map(nines);
  pictures.push(chart({ title: "Latency percentiles", note: "What share of I/Os took at most how long; each mark on the axis is a nine more.",
    xs: asked.map(nines), lines: found.map(([direction, one]) => ({ name: direction, style: direction, ys: asked.map((percentile) => value(one, percentile)) })),
    x: { label: "percentile", name: "percentile", range: [0, Math.max(...asked.map(nines), 1)], marks,
      format: (mark) => String(+(100 * (1 - 10 ** -mark)).toPrecision(6)), tell: (mark) => "p" + +(100 * (1 - 10 ** -mark)).toPrecision(7) },
    y: { format: latency, log: true } }));
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

/** Every figure of a job that the report has. */
function figures(job) {
  const tables = [];
  const found = DIRECTIONS.filter((direction) => job[direction]?.total_ios > 0);
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
  return tables;
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
  const jobs = report.jobs ?? report.client_stats?.filter((job) => job.jobname !== "All clients") ?? [];
  const series = report.iolite?.series;
  const of = (position) => series?.jobs.find((entry) => entry.job === position);
  const home = document.getElementById("pictures");
  const openers = [];
  const section = (title, open, parts) => {
    const details = element("details", { class: "job" }, element("summary", {}, title));
    const build = () => {
      if (details.children.length === 1) fill(details, parts());
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
  if (many) section("All jobs together", true, () => ({ pictures: timePictures(series, together(series)) }));
  jobs.forEach((job, position) => section(`${jobs.length > 1 ? position + 1 + ". " : ""}${shortened(job.jobname)}`, position === 0 && (!many || jobs.length < 3), () => ({
    pictures: [...(of(position) ? timePictures(series, of(position)) : []), ...latencyPictures(job), ...usagePictures(job)],
    rest: [element("h3", {}, "Every figure"), element("div", { class: "tables" }, ...figures(job)), ...options("Options of this job", job["job options"])],
  })));
  if (report.disk_util?.length) {
    const heading = element("h2", {}, "Disks");
    const columns = [["read_ios", "reads", plain], ["write_ios", "writes", plain], ["read_sectors", "read", (value) => amount(value * 512)], ["write_sectors", "written", (value) => amount(value * 512)],
      ["read_merges", "merged reads", plain], ["write_merges", "merged writes", plain], ["in_queue", "time in queue", (value) => seconds(value / 1000)], ["util", "busy", percent]];
    home.after(heading, table("What the disks below the files did meanwhile", ["disk", ...columns.map(([, name]) => name)],
      report.disk_util.map((disk) => [shortened(disk.name), ...columns.map(([key, , format]) => (disk[key] === undefined ? "–" : format(disk[key])))])));
  }
  addEventListener("beforeprint", () => {
    if (jobs.length <= 20) openers.forEach((opener) => opener());
  });
  document.documentElement.dataset.ready = "yes";
}

unpacked().then(show).catch((error) => {
  const place = document.getElementById("pictures");
  place.replaceChildren(element("p", { class: "notice" }, "This browser cannot unpack the pictures' data (" + harmless(error.message) + "). The figures above are complete; a browser of 2023 or later shows the pictures."));
  document.documentElement.dataset.ready = "no";
});
