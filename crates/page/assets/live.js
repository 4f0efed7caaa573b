// The page of a running run. The server sends events: "series" (the new windows, or all), "state" (the phases of the jobs, the
// time left), "messages" (notes, warnings and errors), "end" (the final report is there). After a lost connection, everything is sent again.

/** The most rows, and the most messages, that are shown while the jobs run. The final report has all jobs. */
const MOST_ROWS = 200;
const MOST_MESSAGES = 500;
/** Pictures are redrawn at most once in this time, in milliseconds. */
const PERIOD = 1000;
/** After this many failed connections, the server is considered gone. */
const MOST_FAILURES = 3;
const LISTS = [...NUMBERS, "clat_classes"];
const ASKED = [1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99];

const run = { series: null, state: null, failures: 0, drawnAt: 0, took: 0, isOver: false };
const by = (name) => document.getElementById(name);

/** The entry of a list for a window in which a job was expected to be idle. */
const nothingOf = (key) => (key === "clat_classes" ? [] : null);

/** Makes a list as long as this: where a job paused, there is a gap. */
function fillUp(list, length, key) {
  list.length = Math.min(list.length, length);
  while (list.length < length) list.push(nothingOf(key));
}

/** Takes windows from `since` on, replacing earlier ones. */
function grow(since, fresh) {
  if (since === 0 || !run.series) {
    run.series = fresh;
    return;
  }
  const series = run.series;
  series.end_us.length = since;
  series.end_us.push(...fresh.end_us);
  for (const job of fresh.jobs) {
    let known = series.jobs.find((entry) => entry.job === job.job);
    if (!known) series.jobs.push((known = { job: job.job, depth: job.depth }));
    for (const direction of DIRECTIONS.filter((one) => job[one])) {
      const more = job[direction];
      const had = (known[direction] ??= { first_window: more.first_window });
      const length = more.first_window - had.first_window;
      had.ramp_windows = more.ramp_windows;
      for (const key of LISTS.filter((one) => had[one] || more[one])) {
        fillUp((had[key] ??= []), length, key);
        had[key].push(...(more[key] ?? more.ios.map(() => nothingOf(key))));
      }
    }
  }
}

/** Latencies of all windows of these directions, after their ramps: class and count. Empty if one does not measure them. */
function classesOf(...entries) {
  const counts = new Map();
  for (const { clat_classes: lists = [], ramp_windows: ramp, ios } of entries) {
    const told = lists.slice(ramp);
    if (!told.some((list) => list.length) && ios.slice(ramp).some((count) => count > 0)) return [];
    told.forEach((list) => {
      for (let place = 0; place < list.length; place += 2) counts.set(list[place], (counts.get(list[place]) ?? 0) + list[place + 1]);
    });
  }
  return [...counts].sort((a, b) => a[0] - b[0]);
}

/** The form that these latencies have in a report. */
function measured(classes) {
  const total = classes.reduce((sum, [, count]) => sum + count, 0);
  const middle = (kind) => (classBegin(kind) + classBegin(kind + 1)) / 2;
  const percentile = {};
  let [seen, at] = [0, -1];
  for (const asked of ASKED) {
    while (at < 0 || (seen < (asked / 100) * total && at < classes.length - 1)) seen += classes[(at += 1)][1];
    percentile[asked.toFixed(6)] = middle(classes[at][0]);
  }
  return { N: total, percentile, bins: Object.fromEntries(classes.map(([kind, count]) => [middle(kind), count])) };
}

/** A job as a report would have it, as far as it is known. */
function soFar(entry) {
  const job = {};
  for (const direction of DIRECTIONS.filter((one) => entry[one])) {
    const classes = classesOf(entry[direction]);
    job[direction] = classes.length ? { clat_ns: measured(classes) } : {};
  }
  return job;
}

/** I/Os and bytes per second from a window of a direction on. */
function rates(entry, from) {
  const one = overTime(run.series, entry);
  const first = Math.max(0, from);
  const span = Math.max(1, one.edges[one.ios.length] - one.edges[first]) / 1e6;
  const sum = (list) => list.slice(first).reduce((all, value) => all + value, 0);
  return { ios: sum(one.ios) / span, bytes: sum(one.bytes) / span };
}

/** The first window of the last second, in the lists of this direction. */
function lastSecond(entry) {
  const ends = run.series.end_us;
  const last = ends[ends.length - 1];
  let at = ends.length - 1;
  while (at > 0 && last - ends[at - 1] <= 1e6) at -= 1;
  return at - entry.first_window;
}

function row(cells, attributes) {
  const [first, second, direction, ...rest] = cells;
  const mark = DIRECTIONS.includes(direction) ? [element("span", { class: `mark ${direction}` })] : [];
  return element("tr", attributes, element("th", { class: "name", scope: "row" }, first),
    element("td", { class: "name" }, second), element("td", { class: "short" }, ...mark, direction), ...rest.map((text) => element("td", {}, text)));
}

function answerRows() {
  const rows = [];
  const line = (name, phase, entries, attributes, members = [entries]) => {
    const found = DIRECTIONS.filter((direction) => entries?.[direction]);
    if (!found.length) rows.push(row([name, phase, "–", "–", "–", "–", "–", "–"], attributes));
    found.forEach((direction) => {
      const entry = entries[direction];
      const from = lastSecond(entry);
      const isNow = from < entry.ios.length;
      const now = isNow ? rates(entry, from) : { ios: 0, bytes: 0 };
      const all = rates(entry, Math.min(entry.ramp_windows, entry.ios.length - 1));
      const classes = classesOf(...members.map((one) => one[direction]).filter((one) => one));
      const told = classes.length ? measured(classes).percentile : null;
      const total = entry.ios.reduce((sum, value) => sum + value, 0);
      rows.push(row([name, phase, direction, plain(now.ios), bandwidth(now.bytes), told ? latency(told["99.000000"]) : "–",
        told ? latency(told["50.000000"]) : "–", plain(all.ios)],
      { ...attributes, "data-direction": direction, "data-ios": total }));
    });
  };
  const entryOf = (position) => run.series?.jobs.find((entry) => entry.job === position);
  const jobs = run.state.jobs;
  if (!run.state.hosts && jobs.length > 1 && run.series?.jobs.length > 1) line("all jobs", "", together(run.series), { class: "sum" }, run.series.jobs);
  jobs.slice(0, MOST_ROWS).forEach((job, position) => {
    const phases = job.phases.map(([phase, count]) => (count > 1 || job.phases.length > 1 ? `${count} ${phase}` : phase)).join(", ");
    const isAll = run.state.hosts && position === 0;
    line(shortened(job.name), phases, entryOf(position), { "data-job": position, ...(isAll ? { class: "sum" } : {}) });
  });
  if (jobs.length > MOST_ROWS) rows.push(row([`and ${jobs.length - MOST_ROWS} more ${run.state.hosts ? "hosts" : "jobs"}`, "", "", "", "", "", "", ""], {}));
  return rows;
}

function showAnswer() {
  // What is most asked for comes first: a phone shows no more without scrolling.
  const names = [run.state.hosts ? "host" : "job", "does", "direction", "IOPS now", "bandwidth now", "p99", "p50", "IOPS so far"];
  const head = element("tr", {}, ...names.map((name, place) => element("th", { scope: "col", class: ["name", "name", "short"][place] ?? "" }, name)));
  const body = element("tbody", {}, ...answerRows());
  const old = by("answer").querySelector("tbody");
  if (old) return old.replaceWith(body);
  by("answer").append(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The answer so far" },
    element("table", { class: "summary answer" }, element("thead", {}, head), body)),
  element("p", { class: "hint" }, "Now: the last second. Latencies are those of completion, without the ramp, exact to 6%; not known (–) where a job does not measure them."));
}

/** The mean time of each stage since the last state, or since the begin. */
function stageRows() {
  const rows = [];
  const before = run.stagesBefore ?? new Map();
  const now = new Map();
  run.state.jobs.slice(0, MOST_ROWS).forEach((job, position) => (job.stages ?? []).forEach((told) => {
    const key = `${position} ${told.direction} ${told.names.join()}`;
    const old = before.get(key);
    const ios = told.ios - (old?.ios ?? 0);
    // While nothing is completed, what was seen last stays.
    const means = ios > 0 ? told.sums_ns.map((sum, stage) => (sum - (old?.sums_ns[stage] ?? 0)) / ios) : (old?.means ?? []);
    now.set(key, { ios: told.ios, sums_ns: told.sums_ns, means });
    const whole = means.reduce((sum, mean) => sum + mean, 0);
    const share = (mean) => (whole > 0 ? `${latency(mean)} (${Math.round((100 * mean) / whole)}%)` : latency(mean));
    const parts = told.names.map((name, stage) => element("span", { class: "part" },
      element("span", { class: `mark stage${stage}` }), `${name} ${share(means[stage] ?? 0)}`));
    rows.push(element("tr", { "data-job": position, "data-direction": told.direction },
      element("th", { class: "name", scope: "row" }, shortened(job.name)), element("td", { class: "short" }, told.direction),
      element("td", {}, latency(whole)), element("td", { class: "name parts" }, ...parts)));
  }));
  run.stagesBefore = now;
  return rows;
}

/** Where the time goes, if it is measured. */
function showStages() {
  const rows = stageRows();
  if (!rows.length) return;
  const body = element("tbody", {}, ...rows);
  const old = by("stages")?.querySelector("tbody");
  if (old) return old.replaceWith(body);
  const names = ["job", "direction", "mean", "of which"];
  const head = element("tr", {}, ...names.map((name, place) => element("th", { scope: "col", class: ["name", "short", "", "name"][place] }, name)));
  by("answer").append(element("h2", {}, "Where the time goes"),
    element("div", { id: "stages", class: "scroll", tabindex: "0", role: "region", "aria-label": "Where the time goes" },
      element("table", {}, element("thead", {}, head), body)),
    element("p", { class: "hint" }, "I/Os completed in the last second; if there were none, the last ones before."));
}

function showProgress() {
  const { elapsed_s: elapsed, percent: done, eta_s: left, stuck, stopping } = run.state;
  const parts = [`Running for ${seconds(Math.floor(elapsed))}`];
  if (done !== null) parts.push(`${Math.floor(done)}% done`);
  if (left !== null) parts.push(`about ${seconds(left)} left`);
  if (stuck) parts.push(stuck);
  by("progress").textContent = stopping ? "The run is being ended." : parts.join(", ") + ".";
  by("bar").hidden = done === null;
  if (done !== null) by("bar").value = done;
  if (stopping) by("ending")?.remove();
}

/** The sections of pictures, and how each is built. */
const sections = [];

function addSections() {
  const home = by("pictures");
  const jobs = run.state.jobs;
  const section = (title, isOpen, make) => {
    const place = element("div", { class: "pictures" });
    const details = element("details", { class: "job" }, element("summary", {}, title), element("div", { class: "stage" }, place));
    details.addEventListener("toggle", () => draw());
    details.open = isOpen;
    home.append(details);
    sections.push({ details, place, make, isComing: false });
  };
  const isOfHosts = run.state.hosts;
  if (jobs.length > 1 && !isOfHosts) section("All jobs together", true, () => timePictures(run.series, together(run.series)));
  const numbered = (position) => (jobs.length > 1 && !isOfHosts ? position + 1 + ". " : "");
  jobs.forEach((job, position) => section(numbered(position) + shortened(job.name), position === 0 && (isOfHosts || jobs.length < 3), () => {
    const entry = run.series.jobs.find((one) => one.job === position);
    return entry ? [...timePictures(run.series, entry), ...latencyPictures(soFar(entry))] : [];
  }));
}

/** Whether the reader is using this picture: it is not redrawn then. */
const isRead = (picture) => picture.matches(":hover") || picture.contains(document.activeElement) || picture.querySelector("details[open]");

const titleOf = (picture) => picture.querySelector("figcaption")?.firstChild.textContent ?? picture.textContent;

/** Replaces old pictures with new ones once these are drawn, so that nothing jumps. */
function renew(section) {
  const coming = element("div", { class: "pictures coming", "aria-hidden": "true" }, ...section.make());
  section.isComing = true;
  section.place.after(coming);
  const begun = performance.now();
  const exchange = () => {
    const fresh = [...coming.children];
    if (!fresh.every((picture) => picture.querySelector("svg.chart")) && performance.now() - begun < 1000) return requestAnimationFrame(exchange);
    const old = new Map([...section.place.children].map((picture) => [titleOf(picture), picture]));
    fresh.forEach((picture, place) => {
      const there = old.get(titleOf(picture));
      if (!there) section.place.insertBefore(picture, section.place.children[place] ?? null);
      else if (!isRead(there)) there.replaceWith(picture);
    });
    coming.remove();
    section.isComing = false;
  };
  requestAnimationFrame(exchange);
}

function draw() {
  if (!run.series || !run.state || document.hidden) return;
  const begun = performance.now();
  sections.filter((section) => section.details.open && !section.isComing).forEach(renew);
  run.took = performance.now() - begun;
  run.drawnAt = begun;
  document.documentElement.dataset.ready = "yes";
}

function show() {
  if (!run.state) return;
  if (!sections.length) addSections();
  showProgress();
  showAnswer();
  showStages();
  // A slow machine must not spend all of its time on drawing.
  if (performance.now() - run.drawnAt >= Math.max(PERIOD, 5 * run.took)) draw();
}

function tell(told) {
  const place = by("messages");
  if (!told.messages.length) return;
  if (!place.children.length) {
    place.append(element("section", { class: "notice", "aria-label": "What the run has told" }, element("strong", {}, "Messages"), element("ul", { role: "log" })));
  }
  const list = place.querySelector("ul");
  const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 4;
  for (const message of told.messages) {
    const words = (message.job === null ? "" : shortened(message.job) + ": ") + harmless(message.text).replaceAll("\\x0a", "\n");
    list.append(element("li", { class: message.grave ? "grave" : "" }, element("time", {}, seconds(Math.round(10 * message.at_s) / 10)), words));
    if (message.grave) place.firstChild.classList.add("error");
  }
  while (list.children.length > MOST_MESSAGES) list.firstChild.remove();
  if (isAtEnd) list.scrollTop = list.scrollHeight;
}

/** Asks for confirmation, and then ends the run. */
function offerEnd() {
  const place = by("ending");
  if (!place) return;
  const first = by("stop");
  const back = () => {
    place.replaceChildren(first);
    first.focus();
  };
  first.addEventListener("click", () => {
    const sure = element("button", { type: "button", id: "sure", class: "grave" }, "End all jobs now");
    const no = element("button", { type: "button" }, "No, go on");
    place.replaceChildren(sure, no);
    no.focus();
    no.addEventListener("click", back);
    sure.addEventListener("click", async () => {
      const answer = await fetch("stop", { method: "POST", headers: { "X-Iolite-Stop": document.body.dataset.stop } }).catch(() => null);
      if (!answer?.ok) place.append(element("span", { role: "alert" }, answer ? await answer.text() : "The run does not answer."));
    });
  });
}

function lost(words) {
  by("progress").textContent = words;
  by("bar").hidden = true;
  by("ending")?.remove();
}

function follow() {
  const events = new EventSource("events");
  const on = (name, take) => events.addEventListener(name, (event) => {
    run.failures = 0;
    take(JSON.parse(event.data));
  });
  on("series", ({ since, series }) => grow(since, series));
  on("messages", (told) => {
    if (told.first === 0) by("messages").replaceChildren();
    tell(told);
  });
  on("state", (state) => {
    run.state = state;
    show();
  });
  on("end", () => {
    events.close();
    run.isOver = true;
    // The same address has the final report now.
    location.reload();
  });
  events.onerror = () => {
    run.failures += 1;
    if (run.isOver) return;
    if (run.failures >= MOST_FAILURES || events.readyState === EventSource.CLOSED) {
      events.close();
      lost("The run cannot be reached any more: it has ended, or its page has. What is below is what was seen last.");
    } else {
      by("progress").textContent = "The connection is lost; trying again.";
    }
  };
}

document.addEventListener("visibilitychange", () => draw());
offerEnd();
follow();
