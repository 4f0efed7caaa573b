// The pictures of a sweep: rates and latencies over the depth, latency over rate, and two options as a map.

const STYLES = ["read", "write", "trim", "mixed"];

const named = (values) => Object.entries(values).map(([name, value]) => shortened(`${name}=${value}`, 40)).join(" ");

/** The measurements at the points of a curve, by rising depth. */
function pointsOf(curve, result) {
  return curve.points.map((number) => result.points.find((point) => point.number === number)).filter((point) => point?.figures);
}

const depthAxis = (points) => {
  const depths = points.map((point) => point.depth);
  return { label: "depth: I/Os in flight that the jobs ask for (logarithmic)", name: "depth", log: true, marks: depths,
    range: [Math.min(...depths), Math.max(...depths)], format: plain, tell: plain };
};

/** Rates over depth with the law and the knee; latencies over depth; latency over rate. */
function curvePictures(curve, result) {
  const points = pointsOf(curve, result);
  const figures = points.map((point) => point.figures);
  const depths = points.map((point) => point.depth);
  const x = depthAxis(points);
  const knee = points.find((point) => point.number === curve.knee?.point);
  const marks = knee ? [[knee.depth, "knee"]] : [];
  const lines = [{ name: "measured", style: "read", hasPoints: true, ys: figures.map((one) => one.iops) }];
  if (curve.law) {
    const { lambda, sigma, kappa } = curve.law;
    lines.push({ name: "law", style: "write", ys: depths.map((depth) => (lambda * depth) / (1 + sigma * (depth - 1) + kappa * depth * (depth - 1))) });
  }
  const note = knee ? " The knee is where IOPS divided by mean latency is largest." : "";
  const latencies = [["mean", "mean_ns", "mixed"], ["p50", "p50_ns", "p50"], ["p99", "p99_ns", "p99"]]
    .map(([name, key, style]) => ({ name, style, hasPoints: true, ys: figures.map((one) => one[key] ?? null) })).filter((line) => line.ys.some((value) => value > 0));
  const pictures = [chart({ title: "IOPS over depth", note: `I/Os per second of all jobs.${curve.law ? " The second line is the Universal Scalability Law." : ""}${note}`,
    xs: depths, lines, marks, x, y: { format: plain } })];
  if (latencies.length) {
    pictures.push(chart({ title: "Latency over depth", note: `From submission to completion, logarithmic.${note}`, xs: depths, lines: latencies, marks, x, y: { format: latency, log: true } }));
    const rates = figures.map((one) => one.iops);
    pictures.push(chart({ title: "Latency over IOPS", note: "A point for each depth, in order: where the line turns upwards, more depth brings latency rather than I/Os.",
      xs: rates, lines: latencies, marks: knee ? [[knee.figures.iops, "knee"]] : [],
      x: { label: "IOPS", range: [0, Math.max(...rates) * 1.02], format: plain, tell: (rate) => `${plain(rate)} IOPS` }, y: { format: latency, log: true } }));
  }
  return pictures;
}

/** Rates of several curves in one picture. */
function together(result) {
  const curves = result.curves.map((curve) => ({ curve, points: pointsOf(curve, result) })).filter((one) => one.points.length > 1);
  if (curves.length < 2 || curves.length > STYLES.length) return [];
  const all = curves.flatMap((one) => one.points);
  const depths = [...new Set(all.map((point) => point.depth))].sort((a, b) => a - b);
  const lines = (key) => curves.map((one, index) => ({ name: named(one.curve.values), style: STYLES[index], hasPoints: true,
    ys: depths.map((depth) => one.points.find((point) => point.depth === depth)?.figures[key] ?? null) }));
  return [
    chart({ title: "IOPS over depth", note: "I/Os per second of all jobs, for each combination of the other options.", xs: depths, lines: lines("iops"), x: depthAxis(all), y: { format: plain } }),
    chart({ title: "Mean latency over depth", note: "From submission to completion, logarithmic.", xs: depths, lines: lines("mean_ns"), x: depthAxis(all), y: { format: latency, log: true } }),
  ];
}

/** Two options as a table whose cells are coloured: the brighter, the more. */
function map(title, note, result, key, format) {
  const [rows, columns] = result.sweep.options.filter((option) => option.values.length > 1);
  const at = (row, column) => result.points.find((point) => point.values[rows.name] === row && point.values[columns.name] === column)?.figures?.[key];
  const values = rows.values.flatMap((row) => columns.values.map((column) => at(row, column))).filter((value) => value > 0);
  if (!values.length) return [];
  const cell = (value) => element("td", value > 0 ? { "data-value": value } : {}, value > 0 ? format(value) : "–");
  const head = element("tr", {}, element("th", { class: "name", scope: "col" }, `${rows.name} \\ ${columns.name}`),
    ...columns.values.map((value) => element("th", { scope: "col" }, shortened(value, 40))));
  const body = rows.values.map((row) => element("tr", {}, element("th", { class: "name", scope: "row" }, shortened(row, 40)),
    ...columns.values.map((column) => cell(at(row, column)))));
  colourCells(body.flatMap((row) => [...row.querySelectorAll("td")]));
  return [element("figure", {}, element("figcaption", {}, title, element("small", {}, note)),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, element("table", { class: "map" }, element("thead", {}, head), element("tbody", {}, ...body))))];
}

function show(result) {
  const home = document.getElementById("pictures");
  const pictures = (parts) => element("div", { class: "pictures" }, ...parts);
  const varied = result.sweep.options.filter((option) => option.values.length > 1);
  if (varied.length === 2 && !result.sweep.one_at_a_time && !result.sweep.cases) {
    home.append(pictures([
      ...map("IOPS", "All jobs together; the brighter, the more.", result, "iops", plain),
      ...map("Bandwidth", "All jobs together; the brighter, the more.", result, "bw_bytes", bandwidth),
      ...map("Latency", "The 99th percentile, from submission to completion; the brighter, the longer.", result, "p99_ns", latency)]));
  }
  const several = together(result);
  if (several.length) home.append(pictures(several));
  result.curves.filter((curve) => pointsOf(curve, result).length > 1).forEach((curve, index) => {
    const details = element("details", { class: "job" }, element("summary", {}, named(curve.values) || "IOPS and latency"));
    const build = () => {
      if (details.children.length === 1) details.append(pictures(curvePictures(curve, result)));
    };
    details.addEventListener("toggle", () => details.open && build());
    home.append(details);
    if (index === 0) {
      details.open = true;
      build();
    }
  });
  document.documentElement.dataset.ready = "yes";
}

// A sweep of which nothing can be drawn has no place for pictures.
if (document.getElementById("pictures")) {
  unpacked().then(show).catch((error) => {
    const place = document.getElementById("pictures");
    place.replaceChildren(element("p", { class: "notice" }, "This browser cannot draw the pictures (" + harmless(error.message) + "). The figures above are complete."));
    document.documentElement.dataset.ready = "no";
  });
}
