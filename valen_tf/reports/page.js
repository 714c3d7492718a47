"use strict";
const D = JSON.parse(document.getElementById("data").textContent);
const X = D.examples, COUNT = X.row.length, SIZE = 40;
const $ = (id) => document.getElementById(id);
const name = (label) => D.classes[label];
const percent = (share) => `${(100 * share).toFixed(share < 0.1 && share > 0 ? 1 : 0)}\u00a0%`;
const whole = (number) => number.toLocaleString("en");

// Every text of the user's becomes text, never markup.
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}
function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}
function bar(share) {
  const filled = make("i");
  filled.style.width = `${Math.min(100, 100 * share)}%`;
  return make("div", { class: "bar", "aria-hidden": "true" }, filled);
}

// -- one example ----------------------------------------------------------------------------------
const sets = (place) => pairs(X.sets[place]);
function pairs(flat) {
  const found = [];
  for (let i = 0; i < flat.length; i += 2) found.push([flat[i], flat[i + 1] / 1000]);
  return found;
}
const recovered = (place) => X.sets[place][0];
const certainty = (place) => X.sets[place][1] / 1000;
const reasons = (place) => D.reasons.filter((_, bit) => (X.why[place] >> bit) & 1);
function bars(place, most) {
  const rows = [];
  const inside = sets(place);
  const shown = inside.slice(0, most).map(([label, share]) => [label, share, ""]);
  for (const [label, share] of pairs((X.off || {})[place] || [])) shown.push([label, share, " outside"]);
  for (const [label, share, kind] of shown) {
    rows.push(make("span", { class: `name${kind}${label === recovered(place) ? " top" : ""}`, title: name(label) }, name(label)));
    rows.push(bar(share), make("span", { class: "share" }, percent(share)));
  }
  const left = inside.length - Math.min(most, inside.length) + (X.rest[place] || 0);
  if (left > 0) rows.push(make("span", { class: "share" }, `+ ${left} more`));
  return make("div", { class: "bars" }, ...rows);
}
function picture(place) {
  const data = (D.pictures || {})[place];
  return data ? make("img", { src: `data:image/png;base64,${data}`, alt: `Picture of row ${X.row[place]}` }) : null;
}
function cells(place) { return D.details ? D.details.cells[place] : undefined; }
function glimpse(place) {
  const values = cells(place);
  const words = values ? values.slice(0, 3).map((value, i) => D.details.columns.length > 1 ? `${D.details.columns[i]} ${value}` : value).join(" · ") : "";
  const parts = [picture(place), words ? make("p", { class: "cut" }, words) : null];
  return make("div", { class: "example" }, ...parts);
}

// -- the list -------------------------------------------------------------------------------------
const state = { page: 0, order: "place", reverse: false, shown: [], open: new Set(), picked: new Map(), saved: true };
const ORDERS = { place: (p) => p, missing: (p) => -X.miss[p], unsure: (p) => certainty(p), row: (p) => X.row[p] };

function words(place) {
  const parts = [X.row[place], name(recovered(place)), name(X.guess[place]), ...sets(place).map(([label]) => name(label))];
  return [...parts, ...(cells(place) || [])].join(" ").toLowerCase();
}
function select() {
  const text = $("search").value.trim().toLowerCase();
  const why = $("reason").value, label = $("class").value;
  const kept = [];
  for (let place = 0; place < COUNT; place++) {
    if (why === "any" && X.why[place] === 0) continue;
    if (why !== "" && why !== "any" && !((X.why[place] >> Number(why)) & 1)) continue;
    if (label !== "" && recovered(place) !== Number(label)) continue;
    if (text && !words(place).includes(text)) continue;
    kept.push(place);
  }
  const key = ORDERS[state.order];
  if (state.order !== "place") kept.sort((a, b) => key(a) - key(b) || a - b);
  if (state.reverse) kept.reverse();
  state.shown = kept;
  state.page = 0;
  render();
}
function render() {
  const pages = Math.max(1, Math.ceil(state.shown.length / SIZE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const body = $("labels").tBodies[0];
  body.replaceChildren();
  for (const place of state.shown.slice(state.page * SIZE, (state.page + 1) * SIZE)) {
    body.append(line(place));
    if (state.open.has(place)) body.append(more(place));
  }
  if (!state.shown.length) body.append(make("tr", {}, make("td", { colspan: 7 }, "No label fits. “Show all” clears search and filters.")));
  $("labels").classList.toggle("bare", !D.pictures && !D.details);
  $("count").textContent = `${whole(state.shown.length)} of ${whole(COUNT)} labels`;
  $("page").textContent = `Page ${whole(state.page + 1)} of ${whole(pages)}`;
  $("back").disabled = state.page === 0;
  $("next").disabled = state.page >= pages - 1;
  for (const head of document.querySelectorAll("th[data-order]")) {
    const by = head.dataset.order === state.order;
    head.setAttribute("aria-sort", by ? (state.reverse ? "descending" : "ascending") : "none");
  }
  $("order").value = state.order;
}
function line(place) {
  const open = state.open.has(place), row = X.row[place];
  const guess = X.guess[place], known = sets(place).some(([label]) => label === guess);
  const picked = state.picked.has(place), label = picked ? state.picked.get(place) : suggestion(place);
  const cell = (attributes, ...parts) => make("td", { role: "cell", ...attributes }, ...parts);
  return make("tr", { role: "row", class: picked ? "picked" : "", "data-place": place },
    cell({}, make("label", { class: "tick", title: name(label) }, make("input", {
      type: "checkbox", checked: picked, "aria-label": `Row ${row} is ${name(label)}`,
      onchange: (event) => pick(place, event.target.checked ? label : null) }), make("span", {}, name(label)))),
    cell({ class: "number" }, String(row)),
    cell({ class: "glimpse" }, glimpse(place)),
    cell({}, bars(place, 4)),
    cell({}, name(guess), make("div", { class: "muted" }, `${percent(X.guess_p[place] / 1000)}${known ? "" : ", not a candidate"}`)),
    cell({}, make("div", { class: "tags" }, ...reasons(place).map((reason) => make("span", { class: "tag", title: reason[1] }, reason[0])))),
    cell({}, make("button", {
      type: "button", class: "plain", "aria-expanded": String(open), "aria-label": `Details of row ${row}`,
      onclick: () => toggle(place) }, open ? "Close" : "Open")));
}
function toggle(place) {
  if (!state.open.delete(place)) state.open.add(place);
  render();
  refocus(place, "button");
}
function refocus(place, kind) {
  const found = document.querySelector(`tr[data-place="${place}"] ${kind}`);
  if (found) found.focus({ preventScroll: true });
}
const suggestion = (place) => (X.hint[place] >= 0 ? X.hint[place] : recovered(place));
// A suggestion lies outside of the set where the truth seems to be missing, else it is a candidate.
function hint(place) {
  const label = name(X.hint[place]);
  return X.why[place] & 1 ? `Similar examples and the model speak for ${label}, which is no candidate.`
    : `Of the other candidates, similar examples speak most for ${label}.`;
}
function more(place) {
  const chooser = make("select", { "aria-label": `Right label of row ${X.row[place]}`, onchange: (event) => pick(place, event.target.value === "" ? null : Number(event.target.value)) });
  const chosen = state.picked.get(place);
  chooser.append(make("option", { value: "" }, "not chosen"));
  D.classes.forEach((title, label) => chooser.append(make("option", { value: label, selected: label === chosen }, title)));
  const near = make("ol", { class: "near" });
  for (const other of X.near[place]) {
    near.append(make("li", {}, picture(other), make("p", {}, make("b", {}, name(recovered(other))),
      ` ${percent(certainty(other))} · row ${X.row[other]} · candidates ${sets(other).map(([label]) => name(label)).join(", ")}`)));
  }
  const why = make("ul", {}, ...reasons(place).map((reason) => make("li", {}, `${reason[0]}: ${reason[1]}`)));
  const facts = make("dl", {});
  const values = cells(place);
  if (values) D.details.columns.forEach((title, i) => facts.append(make("dt", {}, title), make("dd", {}, values[i])));
  const block = (title, ...parts) => make("div", {}, make("h3", {}, title), ...parts);
  const left = [picture(place), values ? facts : null].filter((part) => part !== null);
  return make("tr", { role: "row", class: "more" }, make("td", { role: "cell", colspan: 7 }, make("div", { class: "details" },
    left.length ? block("The example", ...left) : null,
    block("Recovered distribution", bars(place, 12)),
    block("Why it is doubtful", X.why[place] ? why : make("p", { class: "muted" }, "Nothing speaks against it."),
      X.hint[place] >= 0 ? make("p", {}, hint(place)) : null,
      X.major ? make("p", { class: "muted" }, `Most annotators said ${name(X.major[place])}.`) : null,
      make("h3", {}, "The right label"), chooser),
    X.near[place].length ? block("Most similar examples", near) : null)));
}

// -- corrections ----------------------------------------------------------------------------------
function pick(place, label) {
  if (label === null) state.picked.delete(place); else state.picked.set(place, label);
  state.saved = state.picked.size === 0;
  const focus = document.activeElement ? document.activeElement.tagName.toLowerCase() : "";
  basket();
  render();
  refocus(place, focus === "select" ? "+ tr select" : "input");
}
function basket() {
  const count = state.picked.size;
  $("basket").hidden = count === 0;
  $("picked").textContent = `${count} correction${count === 1 ? "" : "s"} ticked${state.saved ? ", downloaded" : ""}`;
}
// As the package writes CSV: no spreadsheet takes a name for a formula.
function cell(text) {
  const number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
  const safe = /^'*[=+\-@\t\r\n]/.test(text) && !number.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
function corrections() {
  const rows = [...state.picked].map(([place, label]) => [X.row[place], label]).sort((a, b) => a[0] - b[0]);
  return ["row,label", ...rows.map(([row, label]) => `${row},${cell(name(label))}`), ""].join("\n");
}
function download() {
  const address = URL.createObjectURL(new Blob([corrections()], { type: "text/csv" }));
  const link = make("a", { href: address, download: "corrections.csv" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
  state.saved = true;
  basket();
}

// -- the other sections ---------------------------------------------------------------------------
function overview() {
  document.title = `${D.title} · label report`;
  $("title").textContent = D.title;
  $("subtitle").textContent = D.subtitle;
  $("lead").textContent = D.lead;
  $("foot").textContent = D.foot;
  for (const [number, text] of D.tiles) $("tiles").append(make("div", { class: "tile" }, make("b", {}, number), make("span", {}, text)));
  columns($("certainty"), D.certainty);
  const most = Math.max(1, ...D.reasons.map((reason) => reason[2]));
  const rows = [];
  D.reasons.forEach(([title, meaning, count], bit) => {
    if (meaning === null) return;
    rows.push(make("button", { type: "button", class: "plain name", title: meaning, onclick: () => { $("reason").value = String(bit); select(); $("list").scrollIntoView(); } }, title));
    rows.push(bar(count / most), make("span", { class: "share" }, whole(count)));
  });
  const list = make("div", { class: "bars whole" }, ...rows);
  list.style.gridTemplateColumns = "max-content 1fr 4em";
  $("why").append(list);
  $("reason").append(make("option", { value: "" }, "all labels"), make("option", { value: "any" }, "any doubt"));
  D.reasons.forEach(([title, meaning, count], bit) => meaning && $("reason").append(make("option", { value: bit }, `${title} (${whole(count)})`)));
  $("class").append(make("option", { value: "" }, "all classes"));
  D.classes.forEach((title, label) => $("class").append(make("option", { value: label }, title)));
  for (const [term, meaning] of D.glossary) $("glossary").append(make("dt", {}, term), make("dd", {}, meaning));
}
function columns(target, counts) {
  const most = Math.max(...counts, 1), wide = 400 / counts.length;
  const svg = draw("svg", { viewBox: "0 0 400 140", role: "img", "aria-label": `Histogram of the certainty: ${counts.map((count, i) => `${Math.round(100 * i / counts.length)} % and more: ${count}`).join(", ")}` });
  counts.forEach((count, i) => {
    const height = count ? Math.max(1.5, 108 * count / most) : 0;
    svg.append(draw("rect", { class: "column", x: i * wide + 1, y: 112 - height, width: wide - 2, height }));
  });
  svg.append(draw("line", { class: "grid", x1: 0, x2: 400, y1: 112.5, y2: 112.5 }));
  [0, 25, 50, 75, 100].forEach((tick) => {
    const anchor = tick === 0 ? "start" : tick === 100 ? "end" : "middle";
    svg.append(draw("text", { x: 4 * tick, y: 128, "text-anchor": anchor }, `${tick} %`));
  });
  target.append(svg, make("p", { class: "muted" }, "Share of the recovered label in its distribution"));
}
function table(target, caption, heads, rows) {
  const body = make("tbody", {});
  const fill = () => body.replaceChildren(...rows.map((row) => make("tr", {}, ...row.map((value, i) =>
    make(i === 0 ? "th" : "td", { class: heads[i][1] ? "number" : "", scope: i === 0 ? "row" : null }, value.node || value.text)))));
  const ordered = make("tr", {}, ...heads.map(([title], i) => {
    const head = make("th", { scope: "col", "aria-sort": title === "" ? null : "none", class: heads[i][1] ? "number" : "" }, title === "" ? "" : make("button", { type: "button", onclick: () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of ordered.querySelectorAll("[aria-sort]")) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((a, b) => (a[i].key < b[i].key ? -1 : a[i].key > b[i].key ? 1 : 0) * (down ? -1 : 1));
      fill();
    } }, title));
    return head;
  }));
  target.append(make("caption", {}, caption), make("thead", {}, ordered), body);
  fill();
}
const text = (value) => ({ key: value.toLowerCase(), text: value });
const number = (value, shown) => ({ key: value, text: shown });
function classes() {
  table($("class-table"), "Click a heading to sort. “Confused with” tells what share of the recovered distributions other classes have.",
    [["Class"], ["Recovered", 1], ["Mean certainty", 1], ["Doubtful", 1], ["Confused with"]],
    D.class_table.map(([label, count, sure, doubtful, others]) => [text(name(label)), number(count, whole(count)), number(sure, count ? percent(sure) : "–"),
      number(doubtful, whole(doubtful)),
      { key: others.length ? others[0][1] : 0, node: make("div", { class: "tags" }, ...others.map(([other, share]) => make("span", { class: `tag${share > 0.05 ? " strong" : ""}` }, `${name(other)} ${percent(share)}`))) }]));
  if (!D.heat) return;
  const head = make("tr", {}, make("td", {}), ...D.classes.map((title) => make("th", { scope: "col", title }, title)));
  const rows = D.heat.map((shares, label) => make("tr", {}, make("th", { scope: "row" }, name(label)), ...shares.map((share, other) => {
    const box = make("td", { title: `${name(label)}, ${name(other)}: ${percent(share)}` }, share >= 0.01 ? String(Math.round(100 * share)) : "");
    if (label !== other) { box.className = "shaded"; box.style.setProperty("--share", `${Math.min(100, Math.round(1000 * share))}%`); }
    return box;
  })));
  const tall = D.classes.some((title) => title.length > 3);
  const grid = make("table", { class: tall ? "heat tall" : "heat" }, make("caption", {}, "Where the recovered distributions lie, in percent: a row for each recovered label"), make("thead", {}, head), make("tbody", {}, ...rows));
  grid.style.width = "auto"; grid.style.marginTop = "24px";
  $("heat").append(grid);
}
function annotators() {
  if (!D.annotators) return;
  $("annotators").hidden = false;
  $("agreement").textContent = D.agreement;
  table($("annotator-table"), "By what was recovered of the labels", [["Annotator"], ["Answers", 1], ["Right", 1], [""]],
    D.annotators.map(([who, count, right]) => [text(who), number(count, whole(count)), number(right, percent(right)), { key: right, node: bar(right) }]));
}
function axes(title, low, high, shown, first, last) {
  const svg = draw("svg", { viewBox: "0 0 400 210", role: "img", "aria-label": title });
  [0, 0.5, 1].forEach((part) => {
    const y = 180 - 160 * part;
    svg.append(draw("line", { class: "grid", x1: 44, x2: 395, y1: y, y2: y }));
    svg.append(draw("text", { x: 38, y: y + 4, "text-anchor": "end" }, shown(low + part * (high - low))));
  });
  svg.append(draw("text", { x: 44, y: 198 }, first), draw("text", { x: 395, y: 198, "text-anchor": "end" }, last));
  return svg;
}
function calibration() {
  if (!D.calibration) return;
  $("calibration").hidden = false;
  $("calibration-words").textContent = D.calibration.words;
  const svg = axes("Confidence against hits", 0, 1, percent, "confidence 0 %", "100 %");
  svg.append(draw("line", { class: "faint", x1: 44, x2: 395, y1: 180, y2: 20 }));
  const points = D.calibration.bins.filter((bin) => bin[0] > 0);
  svg.append(draw("polyline", { class: "curve", points: points.map((bin) => `${44 + 351 * bin[1]},${180 - 160 * bin[2]}`).join(" ") }));
  for (const bin of points) svg.append(draw("circle", { class: "dot", cx: 44 + 351 * bin[1], cy: 180 - 160 * bin[2], r: 3.5 }));
  $("reliability").append(svg);
  table($("reliability-table"), D.calibration.caption, [["Confidence"], ["Examples", 1], [D.calibration.hit, 1]],
    points.map((bin) => [{ key: bin[1], text: percent(bin[1]) }, number(bin[0], whole(bin[0])), number(bin[2], percent(bin[2]))]));
}
function training() {
  const curves = Object.entries(D.curves || {});
  if (!curves.length) return;
  $("training").hidden = false;
  $("training-words").textContent = D.training_words;
  for (const [title, values] of curves) {
    const low = Math.min(...values, title.includes("loss") ? 0 : Infinity), high = Math.max(...values), span = high - low || 1;
    const shown = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3));
    const svg = axes(`${title}: from ${shown(values[0])} to ${shown(values[values.length - 1])}`, low, high, shown, "epoch 1", String(D.epochs));
    svg.append(draw("polyline", { class: "curve", points: values.map((value, i) => `${44 + 351 * i / Math.max(1, values.length - 1)},${180 - 160 * (value - low) / span}`).join(" ") }));
    $("curves").append(make("div", {}, make("h3", {}, title), svg));
  }
}
function start() {
  overview(); classes(); annotators(); calibration(); training();
  for (const section of document.querySelectorAll("main section[id]")) {
    if (!section.hidden) $("jump").append(make("a", { href: `#${section.id}` }, section.querySelector("h2").textContent));
  }
  let waiting = 0;
  $("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(select, 150); });
  $("tools").addEventListener("submit", (event) => { event.preventDefault(); select(); });
  for (const id of ["reason", "class"]) $(id).addEventListener("change", select);
  $("order").addEventListener("change", () => { state.order = $("order").value; state.reverse = false; select(); });
  $("reset").addEventListener("click", () => { $("search").value = ""; $("reason").value = ""; $("class").value = ""; state.order = "place"; state.reverse = false; select(); });
  for (const head of document.querySelectorAll("th[data-order]")) {
    head.firstElementChild.addEventListener("click", () => {
      state.reverse = state.order === head.dataset.order && !state.reverse;
      state.order = head.dataset.order;
      select();
    });
  }
  const turn = (step) => { state.page += step; render(); $("count").scrollIntoView(); };
  $("back").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  $("clear").addEventListener("click", () => { state.picked.clear(); state.saved = true; basket(); render(); });
  $("download").addEventListener("click", download);
  window.addEventListener("beforeunload", (event) => { if (!state.saved) event.preventDefault(); });
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const told = () => { $("theme").textContent = dark() ? "Light" : "Dark"; $("theme").setAttribute("aria-pressed", String(dark())); };
  $("theme").addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; told(); });
  told();
  select();
}
start();
