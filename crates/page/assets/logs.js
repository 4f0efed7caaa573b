// Pictures from the logs of a run, at their full detail, or with as many points as a page has room for.

/** The name of a kind of logs, and the picture from samples that it replaces. */
const LOG_KINDS = {
  bw: { title: "Bandwidth over time", unit: "Bytes per second", format: bandwidth, binary: true, replaces: "bw" },
  iops: { title: "IOPS over time", unit: "I/Os per second", format: plain, replaces: "iops" },
  slat: { title: "Submission latency over time", unit: "Logarithmic", format: latency, log: true },
  clat: { title: "Completion latency over time", unit: "Logarithmic", format: latency, log: true, replaces: "latency" },
  lat: { title: "Total latency over time", unit: "Logarithmic", format: latency, log: true },
  ttfb: { title: "Time to the first byte", unit: "Logarithmic", format: latency, log: true },
  asked_bw: { title: "Bandwidth asked for", unit: "Bytes per second", format: bandwidth, binary: true },
  asked_iops: { title: "IOPS asked for", unit: "I/Os per second", format: plain },
  clat_hist: { title: "Latency over time", unit: "Completion latency, logarithmic: from below, p50, p99, p99.9 and the largest", format: latency, log: true, replaces: "latency" },
};

const isList = (list, length) => Array.isArray(list) && list.length === length;

/** The drawings of logs. A stored report may be anything: unsuitable entries are skipped. */
function soundLogs(logs) {
  const ascends = (list) => list.every((value, index) => Number.isFinite(value) && (index === 0 || value >= list[index - 1]));
  const numbers = (list) => list.map((value) => numberOr(value, null));
  return (Array.isArray(logs?.drawn) ? logs.drawn : []).flatMap((log) => {
    if (!(log?.kind in LOG_KINDS) || !DIRECTIONS.includes(log.direction)) return [];
    const made = { job: Number.isInteger(log.job) ? log.job : null, kind: log.kind, direction: log.direction, file: shortened(log.file ?? "–"), isSingle: log.single === true,
      isSum: log.summed === true, files: numberOr(log.files, 1), entries: numberOr(log.entries, 0), end: numberOr(log.end_ms, 0), window: numberOr(log.window_ms, 0) };
    if (Array.isArray(log.ms) && log.ms.length && ascends(log.ms) && isList(log.value, log.ms.length)) {
      made.xs = log.ms.map((ms) => ms / 1000);
      made.ys = numbers(log.value);
      if (isList(log.low, log.ms.length) && isList(log.high, log.ms.length)) [made.lows, made.highs] = [numbers(log.low), numbers(log.high)];
    }
    if (Array.isArray(log.edges_ms) && log.edges_ms.length > 1 && ascends(log.edges_ms) && isList(log.clat_classes, log.edges_ms.length - 1)) {
      made.edges = log.edges_ms.map((ms) => ms / 1000);
      made.columns = log.clat_classes.map(sharesOf);
      for (const key of ["p50_ns", "p99_ns", "p99.9_ns", "max_ns"]) made[key] = isList(log[key], made.columns.length) ? numbers(log[key]) : made.columns.map(() => null);
    }
    return [made];
  });
}

/** The pictures of a job that are drawn from its logs. */
const replacedBy = (logs) => new Set(logs.filter((log) => log.xs || log.columns).map((log) => LOG_KINDS[log.kind].replaces));

const counted = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");

/** How much of a log a picture shows. */
function shownOf(log) {
  const from = `From ${log.file}${log.files > 1 ? ` and ${log.files - 1} more` : ""}: ${counted(log.entries)} ${log.isSingle ? "I/Os" : "entries"}`;
  const kind = LOG_KINDS[log.kind];
  if (log.isSum) return `${from}, the rates of all workers together in ${counted(log.xs.length)} windows.`;
  if (log.isSingle && log.window > 0) {
    const band = log.lows ? "; the pale band has the lowest and the highest rate of 10 ms" : "";
    return `${from}, counted in windows of ${seconds(log.window / 1000)}${band}.`;
  }
  if (log.xs.length >= log.entries) return `${from}, all drawn${log.lows ? "; the pale band goes up to the largest of each window" : ""}.`;
  const middle = kind.log && log.isSingle ? "means of neighbours" : "means";
  return `${from}, drawn as ${counted(log.xs.length)} ${middle}; the pale band has the lowest and the highest.`;
}

/** A log of rates beside that of what a schedule asked for: common times, and the values of both. */
function besideAsked(log, asked) {
  const xs = [...new Set([...log.xs, ...asked.xs])].sort((one, other) => one - other);
  // The log has no entries where nothing was done.
  const usual = log.xs.slice(1).reduce((least, at, index) => Math.min(least, at - log.xs[index]), asked.xs[1] - asked.xs[0] || Infinity) * 0.99;
  let [own, next] = [0, 0];
  const ys = xs.map((at) => {
    while (own < log.xs.length && log.xs[own] < at) own += 1;
    if (log.xs[own] === at) return log.ys[own];
    return own > 0 && at - log.xs[own - 1] < usual ? log.ys[own - 1] : 0;
  });
  const demand = xs.map((at) => {
    while (next < asked.xs.length && asked.xs[next] < at) next += 1;
    return asked.ys[next] ?? null;
  });
  return { xs, ys, demand };
}

/** The pictures of the logs of a job, or of several jobs. */
function logPictures(logs) {
  const end = Math.max(0, ...logs.map((log) => Math.max(log.end / 1000, log.xs?.at(-1) ?? 0)));
  const x = timeAxis([0, end > 0 ? end : 1]);
  const partner = (log, kind) => log.xs && logs.find((other) => other.xs && other.kind === kind && other.job === log.job && other.direction === log.direction);
  return logs.flatMap((log) => {
    const kind = LOG_KINDS[log.kind];
    const pictures = [];
    const asked = partner(log, `asked_${log.kind}`);
    if (asked) {
      const { xs, ys, demand } = besideAsked(log, asked);
      const lines = [{ name: log.direction, style: log.direction, ys }, { name: `${log.direction}: asked`, style: "asked", ys: demand }];
      pictures.push(chart({ title: `${kind.title}: ${log.direction}`, note: `${kind.unit}. The dotted line is what rate_schedule asked for. ${shownOf(log)}`, xs, x, lines,
        y: { format: kind.format, binary: kind.binary } }));
    } else if (log.xs && !(log.kind.startsWith("asked_") && partner(log, log.kind.slice(6)))) {
      const isDots = log.isSingle && kind.log && log.xs.length >= log.entries;
      const line = { name: log.direction, style: log.direction, ys: log.ys, isDots, ...(log.lows ? { lows: log.lows, highs: log.highs } : {}) };
      const inWords = (value) => (value === null ? "–" : kind.format(value));
      pictures.push(chart({ title: `${kind.title}: ${log.direction}`, note: `${kind.unit}. ${shownOf(log)}`, xs: log.xs, x, lines: [line], y: { format: kind.format, log: kind.log, binary: kind.binary },
        ...(log.lows ? { head: [x.name, "mean", "lowest", "highest"],
          rows: () => log.xs.map((at, index) => [x.tell(at), inWords(log.ys[index]), inWords(log.lows[index]), inWords(log.highs[index])]) } : {}) }));
    }
    if (log.columns) {
      const middles = log.columns.map((_, index) => (log.edges[index] + log.edges[index + 1]) / 2);
      const each = `Columns of ${seconds(log.edges[1] - log.edges[0])}.`;
      const from = `From ${log.file}${log.files > 1 ? ` and ${log.files - 1} more` : ""}: ${counted(log.entries)} ${log.isSingle ? "I/Os" : "histograms"}. ${each}`;
      const percentiles = [["p50_ns", "p50", "p50"], ["p99_ns", "p99", "p99"], ["p99.9_ns", "p99.9", "p999"], ["max_ns", "max", "max"]];
      if (log.kind === "clat_hist") {
        pictures.push(chart({ title: `${kind.title}: ${log.direction}`, note: `${kind.unit}. ${from}`, xs: middles, x, y: { format: latency, tell: latencyAtMost, log: true },
          lines: percentiles.map(([key, name, style]) => ({ name, style, ys: log[key] })) }));
      }
      const name = { slat: "Submission latency", lat: "Total latency", ttfb: "Time to the first byte" }[log.kind] ?? "Latency";
      const map = heatMap({ title: `${name} heat map: ${log.direction}`, note: `The brighter, the more of the I/Os at that time had that latency. ${from}`, edges: log.edges, columns: log.columns,
        begin: classBegin, x, y: { format: latencyAtMost }, head: [x.name, "latency from", "to", "share"],
        rows: () => log.columns.flatMap((column, index) => column.map(([one, share]) =>
          [x.tell(middles[index]), latency(classBegin(one)), one < LAST_CLASS ? latency(classBegin(one + 1)) : "any", percent(100 * share)])) });
      if (map) pictures.push(map);
    }
    return pictures;
  });
}
