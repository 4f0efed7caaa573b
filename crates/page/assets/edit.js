// The editor of a job file. The server checks the text ("check") as the command line would, and each mistake is underlined at its
// place: a transparent text with the underlines lies behind the text area. The server provides the options and their help as a file
// ("options.json": name, other names, type, default, help, keywords, engine).

/** The text is checked when it has not changed for this time, in milliseconds. */
const PAUSE = 250;
/** The most completions that are offered at a time. */
const MOST_OFFERS = 30;

const by = (name) => document.getElementById(name);
const text = by("job");
const known = { options: [], checked: null, mistakes: [], timer: 0, isAsking: false, isStale: false, offers: [], chosen: -1, from: 0 };

/** An element with text in it, and nothing that could be markup. */
function made(tag, words, name) {
  const element = document.createElement(tag);
  if (words !== undefined) element.textContent = words;
  if (name) element.className = name;
  return element;
}

/** Sends the text to the server for a check. */
function ask(what, more) {
  return fetch(what, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Iolite-Start": document.body.dataset.start },
    body: JSON.stringify({ text: text.value, ...more }),
  });
}

/** The error of an answer, or a message that there is none. */
async function answerOf(response) {
  const answer = await response.catch(() => null);
  if (!answer) return { why: "The server does not answer: it may have been ended." };
  if (!answer.ok) return { why: (await answer.text()).trim() };
  return answer.json();
}

// ---------------------------------------------------------------------------------------------------------------------------
// Mistakes

/** Where a mistake is underlined: from its column to the end of the word, or of the line where a value has several. */
function extent(line, column) {
  const points = Array.from(line);
  const begin = Math.min(Math.max(column - 1, 0), Math.max(points.length - 1, 0));
  const before = points.slice(0, begin).join("").length;
  const word = /^\S+/.exec(line.slice(before));
  return [before, before + Math.max(word ? word[0].length : 0, 1)];
}

/** Draws the underlines. */
function mark() {
  const lines = text.value.split("\n").map((line) => line.replace(/\r$/, ""));
  const parts = [];
  lines.forEach((line, index) => {
    const here = known.mistakes.filter((one) => one.line === index + 1).map((one) => [...extent(line, one.column ?? 1), one.warning]);
    here.sort((a, b) => a[0] - b[0]);
    let at = 0;
    for (const [begin, end, isWarning] of here.filter((one, place) => !place || one[0] >= here[place - 1][1])) {
      parts.push(line.slice(at, begin), made("mark", line.slice(begin, end) || " ", isWarning ? "warning" : "mistake"));
      at = Math.max(end, at);
    }
    parts.push(line.slice(at), "\n");
  });
  by("marks").replaceChildren(...parts);
  follow();
}

/** Keeps the underlines below the text. */
function follow() {
  by("marks").scrollTop = text.scrollTop;
  by("marks").scrollLeft = text.scrollLeft;
}

/** Puts the caret to a mistake. */
function goTo(mistake) {
  const lines = text.value.split("\n");
  const line = Math.min(mistake.line, lines.length) - 1;
  const [begin, end] = extent(lines[line], mistake.column ?? 1);
  const start = lines.slice(0, line).reduce((sum, one) => sum + one.length + 1, 0);
  text.focus();
  text.setSelectionRange(start + begin, start + Math.min(end, lines[line].length));
  const height = parseFloat(getComputedStyle(text).lineHeight);
  text.scrollTop = Math.max(0, line * height - text.clientHeight / 2);
}

/** Shows the server's answer. */
function show(answer) {
  known.mistakes = answer.mistakes ?? [];
  const wrong = known.mistakes.filter((one) => !one.warning).length;
  const list = known.mistakes.map((one) => {
    const item = made("li", undefined, one.warning ? "warning" : "mistake");
    if (one.line) {
      const button = made("button", `${one.line}:${one.column ?? 1}`);
      button.type = "button";
      button.setAttribute("aria-label", `Go to line ${one.line}, column ${one.column ?? 1}`);
      button.addEventListener("click", () => goTo(one));
      item.append(button);
    }
    item.append(made("span", (one.warning ? "warning: " : "") + one.message));
    return item;
  });
  by("mistakes").replaceChildren(...list);
  text.setAttribute("aria-invalid", String(wrong > 0));
  by("verdict").textContent = answer.why ?? (wrong ? `${wrong} ${wrong === 1 ? "mistake" : "mistakes"}` : "No mistakes");
  by("start").disabled = wrong > 0 || Boolean(answer.busy);
  const link = made("a", "A run is in progress");
  link.href = "live/";
  by("going").replaceChildren(...(answer.busy ? [link] : []));
  // The caller waits for its end.
  clearTimeout(known.timer);
  if (answer.busy) known.timer = setTimeout(check, 2000);
  mark();
}

/** Starts a check of the text; changes during a check start another one. */
async function check() {
  if (known.isAsking) {
    known.isStale = true;
    return;
  }
  known.isAsking = true;
  const checked = text.value;
  const answer = await answerOf(ask("check"));
  known.isAsking = false;
  if (checked === text.value) {
    known.checked = checked;
    show(answer);
    document.documentElement.dataset.checked = String(Number(document.documentElement.dataset.checked ?? 0) + 1);
  }
  if (known.isStale || checked !== text.value) {
    known.isStale = false;
    check();
  }
}

// ---------------------------------------------------------------------------------------------------------------------------
// Completion

/** The line of the caret up to it, and all of it. */
function caretLine() {
  const begin = text.value.lastIndexOf("\n", text.selectionStart - 1) + 1;
  const end = text.value.indexOf("\n", begin);
  return { begin, before: text.value.slice(begin, text.selectionStart), whole: text.value.slice(begin, end < 0 ? undefined : end) };
}

/** The options that the text's engines have, and those of all jobs. */
function options() {
  const engines = new Set([...text.value.matchAll(/^\s*ioengine\s*=\s*([\w-]+)/gm)].map((found) => found[1]));
  return known.options.filter((one) => !one.engine || engines.has(one.engine));
}

const named = (name) => options().find((one) => one.name === name || one.aliases.includes(name));

/** The completions at the caret, and where the completed word begins. */
function completions(isAsked) {
  const { begin, before } = caretLine();
  const name = /^\s*([A-Za-z0-9_-]*)$/.exec(before);
  if (name) {
    const typed = name[1].toLowerCase();
    if (!typed && !isAsked) return null;
    const fitting = (test) => options().filter((one) => [one.name, ...one.aliases].some(test));
    const begins = fitting((one) => one.startsWith(typed));
    const found = [...begins, ...(typed.length > 1 ? fitting((one) => one.includes(typed)).filter((one) => !begins.includes(one)) : [])];
    const offers = found.map((one) => ({ word: one.name + (one.type === "switch" ? "" : "="), shown: one.name, help: one.help }));
    return { from: begin + before.length - name[1].length, offers };
  }
  const value = /^\s*([A-Za-z0-9_-]+)\s*=\s*([^\s,:;#]*)$/.exec(before);
  const option = value && named(value[1]);
  if (!option) return null;
  const offers = option.keywords.filter(([word]) => word.startsWith(value[2])).map(([word, help]) => ({ word, shown: word, help }));
  return { from: begin + before.length - value[2].length, offers };
}

function close() {
  known.offers = [];
  known.chosen = -1;
  by("offers").hidden = true;
  by("offers").replaceChildren();
  text.removeAttribute("aria-activedescendant");
}

/** Shows the completions at the caret, if there are any. */
function offer(isAsked) {
  const found = completions(isAsked);
  const offers = (found?.offers ?? []).slice(0, MOST_OFFERS);
  const typed = found ? text.value.slice(found.from, text.selectionStart) : "";
  if (!offers.length || (offers.length === 1 && offers[0].shown === typed)) return close();
  [known.offers, known.from, known.chosen] = [offers, found.from, -1];
  const items = offers.map((one, index) => {
    const item = made("li");
    item.id = `offer-${index}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.append(made("b", one.shown), made("span", one.help));
    // Before the text loses the caret.
    item.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      take(index);
    });
    return item;
  });
  by("offers").replaceChildren(...items);
  by("offers").hidden = false;
  place();
}

/** Puts the list below the line of the caret, or above it if there is more room. */
function place() {
  const style = getComputedStyle(text);
  const height = parseFloat(style.lineHeight);
  const line = text.value.slice(0, known.from).split("\n").length;
  const top = parseFloat(style.paddingTop) + line * height - text.scrollTop;
  const list = by("offers");
  list.style.left = "0.5rem";
  const isBelow = top + list.offsetHeight < innerHeight - by("editor").getBoundingClientRect().top || top < list.offsetHeight;
  list.style.top = `${isBelow ? top + 2 : top - height - list.offsetHeight - 2}px`;
}

/** Selects the next entry, or the previous one. */
function move(by_) {
  const count = known.offers.length;
  known.chosen = known.chosen < 0 ? (by_ > 0 ? 0 : count - 1) : (known.chosen + by_ + count) % count;
  [...by("offers").children].forEach((item, index) => item.setAttribute("aria-selected", String(index === known.chosen)));
  const item = by("offers").children[known.chosen];
  item.scrollIntoView({ block: "nearest" });
  text.setAttribute("aria-activedescendant", item.id);
}

/** Replaces the word at the caret with a completion. */
function take(index) {
  const { word } = known.offers[index];
  text.focus();
  text.setSelectionRange(known.from, text.selectionStart);
  // Like typing: it can be undone. (There is no other way that keeps that.)
  if (!document.execCommand("insertText", false, word)) text.setRangeText(word, known.from, text.selectionEnd, "end");
  close();
  changed();
  if (word.endsWith("=")) offer(true);
}

/** Shows the help of the option in this line. */
function explain() {
  const name = /^\s*([A-Za-z0-9_-]+)/.exec(caretLine().whole)?.[1];
  const option = name && named(name);
  const basis = option && [option.type, option.default ? `default ${option.default}` : ""].filter(Boolean).join(", ");
  by("help").textContent = option ? `${option.name}: ${option.help} (${basis})` : "";
}

// ---------------------------------------------------------------------------------------------------------------------------
// Starting

/** Asks for confirmation of targets that hold data: their names have to be typed. */
function confirm(holds) {
  const section = by("confirm");
  const title = made("h2", holds.length === 1 ? "This target holds data" : "These targets hold data");
  title.id = "destroys";
  const inputs = holds.map(({ name, what }) => {
    const label = made("label");
    const input = made("input");
    [input.type, input.autocomplete, input.spellcheck] = ["text", "off", false];
    label.append(made("code", name), `: ${what}. Type its name to let the job destroy that:`, input);
    return { name, label, input };
  });
  const button = made("button", "Start, and destroy it", "grave");
  button.type = "button";
  const isConfirmed = () => inputs.every(({ name, input }) => input.value === name);
  button.disabled = true;
  for (const { input } of inputs) input.addEventListener("input", () => (button.disabled = !isConfirmed()));
  button.addEventListener("click", () => start(inputs.map(({ input }) => input.value)));
  section.replaceChildren(title, ...inputs.map(({ label }) => label), button);
  section.hidden = false;
  inputs[0].input.focus();
}

function withdraw() {
  by("confirm").hidden = true;
  by("confirm").replaceChildren();
}

async function start(confirmed) {
  by("start").disabled = true;
  withdraw();
  const answer = await answerOf(ask("start", { confirmed }));
  if (answer.started) {
    location.assign("live/");
    return;
  }
  show(answer);
  if (!known.mistakes.some((one) => !one.warning) && answer.holds?.length) {
    by("verdict").textContent = "Not started yet";
    confirm(answer.holds);
  }
}

// ---------------------------------------------------------------------------------------------------------------------------

/** The text has changed. */
function changed() {
  if (text.value === known.checked) return;
  withdraw();
  mark();
  clearTimeout(known.timer);
  known.timer = setTimeout(check, PAUSE);
  explain();
}

text.addEventListener("input", () => {
  changed();
  offer(false);
});
text.addEventListener("scroll", () => {
  follow();
  if (known.offers.length) place();
});
text.addEventListener("blur", close);
document.addEventListener("selectionchange", () => {
  if (document.activeElement !== text) return;
  explain();
  if (known.offers.length && text.selectionStart < known.from) close();
});
text.addEventListener("keydown", (event) => {
  const isOpen = known.offers.length > 0;
  if (event.key === " " && event.ctrlKey) offer(true);
  else if (isOpen && event.key === "ArrowDown") move(1);
  else if (isOpen && event.key === "ArrowUp") move(-1);
  else if (isOpen && event.key === "Escape") close();
  else if (isOpen && event.key === "Tab" && !event.shiftKey) take(Math.max(known.chosen, 0));
  else if (isOpen && event.key === "Enter" && known.chosen >= 0) take(known.chosen);
  else {
    if (isOpen && ["ArrowLeft", "ArrowRight", "Home", "End", "Enter", "PageUp", "PageDown"].includes(event.key)) close();
    return;
  }
  event.preventDefault();
});
by("start").addEventListener("click", () => start([]));

fetch("options.json")
  .then((answer) => answer.json())
  .then((options) => {
    known.options = options;
    document.documentElement.dataset.ready = "yes";
    explain();
  })
  .catch(() => (by("help").textContent = "The options cannot be had, so none are completed."));
check();
