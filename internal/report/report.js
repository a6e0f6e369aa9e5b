"use strict";
// The page of a trace. All texts of the trace reach the document as text (textContent), never as HTML.
(() => {
const data = JSON.parse(document.getElementById("index").textContent);
for (const key of ["frames", "compiles", "processes", "functions", "flame", "breaks", "recompiles", "events"]) data[key] ??= [];
const compiles = data.compiles, several = data.processes.length > 1;
const view = document.getElementById("view");
const state = { tab: "compiles", query: "", filter: "all", process: "", compile: -1, sort: {} };
// A row's left column fits a name and a place; the whole path is in the tooltip.
const base = file => file.slice(file.lastIndexOf("/") + 1);

// ---- making elements ----
function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const e = document.createElement(name);
  if (classes.length) e.className = classes.join(" ");
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== false && v !== null && v !== undefined) e.setAttribute(k, v);
  }
  add(e, children);
  return e;
}
function add(e, children) {
  for (const c of children.flat(4)) if (c !== null && c !== undefined && c !== false) e.append(c);
}
function svg(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) k.startsWith("on") ? e.addEventListener(k.slice(2), v) : e.setAttribute(k, v);
  e.append(...children);
  return e;
}
function time(us) {
  const [n, unit] = us < 1e3 ? [us, "µs"] : us < 1e6 ? [us / 1e3, "ms"] : [us / 1e6, "s"];
  return (n < 10 ? n.toFixed(2) : n < 100 ? n.toFixed(1) : n.toFixed(0)) + " " + unit;
}
const place = (file, line) => h("span.where", { title: file + ":" + line }, base(file) + ":" + line);
const plural = (n, word) => n + " " + word + (n === 1 ? "" : "s");
const name = c => compiles[c].f.name + (compiles[c].at ? ", from line " + compiles[c].at : "");
const label = c => "#" + compiles[c].id + (several ? " of " + data.processes[compiles[c].p].pid : "");
function link(c) {
  return h("button.link", { title: name(c), onclick: () => go(c) }, label(c));
}
function links(list) {
  const shown = list.slice(0, 6).map(c => [link(c), " "]);
  return list.length > 6 ? [shown, h("span.soft", null, "and " + (list.length - 6) + " more")] : shown;
}
function go(c) { location.hash = "c" + c; }

// ---- details, unpacked on first use ----
const chunks = new Map();
function details(c) {
  const n = Math.floor(c / data.perChunk);
  if (!chunks.has(n)) chunks.set(n, unpack(n));
  return chunks.get(n).then(rows => rows[c % data.perChunk]);
}
async function unpack(n) {
  const text = JSON.parse(document.getElementById("chunk" + n).textContent);
  const bytes = Uint8Array.from(atob(text), ch => ch.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// ---- tabs ----
const tabs = {
  compiles: ["Translations", () => compiles.length, showCompiles],
  breaks: ["Graph breaks", () => data.breaks.reduce((n, b) => n + b.translations.length, 0), showBreaks],
  recompiles: ["Recompiles", () => compiles.filter(c => c.failures > 0).length, showRecompiles],
  functions: ["Time by function", () => data.functions.length, showFunctions],
  events: ["Events", () => data.events.filter(e => e.event !== "end").length, showEvents],
  processes: ["Processes", () => data.processes.length, showProcesses],
};
function showTabs() {
  const bar = document.getElementById("tabs");
  bar.replaceChildren(...Object.entries(tabs).map(([key, [title, count]]) =>
    h("button", { role: "tab", id: "tab-" + key, "aria-selected": String(state.tab === key), onclick: () => { location.hash = key; } },
      title, h("span.count", null, String(count())))));
}
function show() {
  showTabs();
  view.replaceChildren();
  tabs[state.tab][2]();
}
function search(placeholder, changed, ...more) {
  const input = h("input", { type: "search", id: "search", placeholder, value: state.query, "aria-label": placeholder });
  input.addEventListener("input", () => { state.query = input.value; changed(); });
  return h("div.bar", null, input, ...more);
}
const words = () => state.query.toLowerCase().split(/\s+/).filter(Boolean);
const matches = text => { const low = text.toLowerCase(); return words().every(w => low.includes(w)); };

// ---- translations: the tree by the user's stack ----
const filters = {
  all: ["everything", () => true],
  breaks: ["with graph breaks", c => c.nbreaks > 0],
  recompiles: ["recompiles", c => c.failures > 0],
  left: ["left to CPython or failed", c => c.status !== "ok" && c.status !== "nothing"],
  slow: ["slower than 10 ms", c => c.us > 1e4],
};
const searchable = new Map();
function textOf(c) {
  if (!searchable.has(c)) {
    const x = compiles[c];
    searchable.set(c, ["#" + x.id, x.f.name, x.f.file, x.kind, x.status, x.why, x.breaks,
      ...x.stack.map(i => data.frames[i][0] + " " + data.frames[i][1] + " " + data.frames[i][3])].join(" "));
  }
  return searchable.get(c);
}
function treeOf(list) {
  const root = { kids: new Map(), functions: new Map(), count: 0 };
  for (const c of list) {
    const x = compiles[c];
    let node = root;
    const step = (key, make) => {
      if (!node.kids.has(key)) node.kids.set(key, { ...make, kids: new Map(), functions: new Map(), count: 0 });
      node = node.kids.get(key);
      node.count++;
    };
    if (several) step("p" + x.p, { process: x.p });
    for (let i = x.stack.length - 1; i >= 0; i--) step("f" + x.stack[i], { frame: data.frames[x.stack[i]] });
    const key = x.f.name + "\0" + x.f.file + "\0" + x.f.line;
    if (!node.functions.has(key)) node.functions.set(key, { place: x.f, list: [] });
    node.functions.get(key).list.push(c);
  }
  return root;
}
function showCompiles() {
  const tree = h("div.tree", { id: "tree" }), detail = h("div.detail", { id: "detail" });
  const found = h("span.soft", { id: "found" });
  const refresh = () => {
    const list = [];
    for (let c = 0; c < compiles.length; c++)
      if (filters[state.filter][1](compiles[c]) && (state.process === "" || compiles[c].p === +state.process) && matches(textOf(c))) list.push(c);
    found.textContent = list.length === compiles.length ? "" : list.length + " of " + compiles.length;
    tree.replaceChildren();
    if (!list.length) tree.append(h("div.empty", null, compiles.length ? "Nothing matches." : "Nothing was translated."));
    drawTree(tree, treeOf(list));
  };
  const filter = h("select", { id: "filter", "aria-label": "which translations", onchange: e => { state.filter = e.target.value; refresh(); } },
    Object.entries(filters).map(([k, [title]]) => h("option", { value: k, selected: state.filter === k && "" }, title)));
  const process = several && h("select", { "aria-label": "process", onchange: e => { state.process = e.target.value; refresh(); } },
    h("option", { value: "" }, "all processes"),
    data.processes.map((p, i) => h("option", { value: i, selected: state.process === String(i) && "" }, "process " + p.pid)));
  add(view, [search("function, file, reason, #number", refresh, filter, process, found), h("div.split", null, tree, detail)]);
  refresh();
  drawDetail(detail);
}
// Nodes are opened until about this many rows are drawn. Other nodes are drawn when the user opens them.
const FIRST_ROWS = 300;
function drawTree(into, root) {
  let rows = 0;
  const queue = [];
  const put = (node, box) => {
    for (const f of node.functions.values()) box.append(functionRow(f)), rows++;
    for (const kid of node.kids.values()) {
      const path = [kid];
      let last = kid;
      while (last.kids.size === 1 && last.functions.size === 0 && last.frame) { // frames with one callee share an entry
        const next = last.kids.values().next().value;
        path.push(last = next);
      }
      rows += Math.min(path.length, 4);
      const kids = h("div.kids"), mark = h("span.fold-mark", null, "▸");
      let drawn = false;
      const open = on => {
        if (on && !drawn) { drawn = true; put(last, kids); }
        kids.hidden = !on;
        mark.textContent = on ? "▾" : "▸";
      };
      const lines = path.map((n, i) => nodeLine(n, i === path.length - 1 ? mark : h("span.fold-mark"), i === path.length - 1 && n.count));
      for (const line of lines) { line.classList.add("fold"); line.addEventListener("click", () => open(kids.hidden)); }
      if (lines.length > 5) { // such a path leads through a framework, so only its ends are shown
        const between = lines.splice(1, lines.length - 3);
        const rest = h("div.line.fold", { onclick: () => rest.replaceWith(...between) }, h("span.fold-mark"), h("span.src", null, "… " + between.length + " frames"));
        lines.splice(1, 0, rest);
      }
      kids.hidden = true;
      box.append(h("div.node", null, lines, kids));
      if (rows < FIRST_ROWS) queue.push(open);
    }
  };
  put(root, into);
  while (queue.length && rows < FIRST_ROWS) queue.shift()(true);
}
function nodeLine(n, mark, count) {
  if (n.process !== undefined) {
    const p = data.processes[n.process];
    return h("div.line", { title: p.command }, mark, h("span.fn", null, "process " + p.pid), h("span.src", null, p.command), h("span.count", null, String(n.count)));
  }
  const [fn, file, line, source] = n.frame;
  return h("div.line", { title: file + ":" + line + "  " + source }, mark, h("span", null, fn), place(file, line), h("span.src", null, source),
    count ? h("span.count", null, String(count)) : null);
}
const MARKS = { resume: "↳ ", inner: "· ", call: "" };
function functionRow(f) {
  const box = h("div.chips");
  const draw = limit => {
    box.replaceChildren(...f.list.slice(0, limit).map(c => {
      const x = compiles[c];
      const extra = [x.ops && plural(x.ops, "op"), x.nbreaks && plural(x.nbreaks, "break"), x.failures && "again"].filter(Boolean).join(", ");
      return h("button.chip.s-" + x.status, { "data-compile": c, "aria-pressed": String(state.compile === c), onclick: () => go(c),
        title: [x.status + (x.why ? ": " + x.why : ""), plural(x.ops, "operation"), time(x.us), x.at ? "from line " + x.at : ""].filter(Boolean).join(" · ") },
        MARKS[x.kind] + "#" + x.id, extra && h("span.what", null, " " + extra));
    }));
    if (f.list.length > limit) box.append(h("button.link", { onclick: () => draw(limit * 10) }, (f.list.length - limit) + " more"));
  };
  draw(24);
  return h("div.node", null,
    h("div.line", { title: f.place.file + ":" + f.place.line }, h("span.fold-mark"), h("span.fn", null, f.place.name), place(f.place.file, f.place.line)), box);
}

// ---- one translation ----
function drawDetail(box) {
  const c = state.compile;
  if (c < 0 || c >= compiles.length) {
    box.replaceChildren(h("div.empty", null, "Choose a translation on the left. An arrow marks the rest of a frame after a graph break."));
    return;
  }
  const x = compiles[c];
  box.replaceChildren(
    h("p.title", null, x.f.name, " ", h("span.soft", null, label(c))),
    h("div", null, h("span.tag." + ({ ok: "good", nothing: "soft", raised: "bad", error: "bad" }[x.status] || "warn"), null, STATUS[x.status] || x.status),
      h("span.tag", null, x.kind === "resume" ? "the rest of the frame, from line " + x.at : x.kind === "inner" ? "called by optimized code" : "optimized function"),
      x.nbreaks > 0 && h("span.tag.warn", null, plural(x.nbreaks, "graph break")), x.failures > 0 && h("span.tag.warn", null, "translated again"),
      h("span.tag", null, plural(x.ops, "operation")), h("span.tag", null, plural(x.guards, "guard")), h("span.tag", null, time(x.us))),
    x.why && h("p", null, x.why),
    h("div", { id: "more" }, h("p.soft", null, "unpacking …")));
  details(c).then(t => { if (state.compile === c) box.querySelector("#more")?.replaceChildren(...more(c, t)); },
    e => box.querySelector("#more")?.replaceChildren(h("p.note", null, "This part of the page cannot be unpacked: " + e)));
}
const STATUS = { ok: "captured", nothing: "nothing to capture", skipped: "left to CPython", later: "the next call is translated",
  raised: "raised to the user", error: "internal error" };
function more(c, t) {
  const x = compiles[c], out = [];
  const part = (title, ...content) => { out.push(h("h3", null, title), ...content.flat(4).filter(Boolean)); };
  const failures = t.failures || [], breaks = t.breaks || [], calls = t.calls || [];
  if (failures.length) part("Why it was translated again", failureTable(failures));
  if (breaks.length) part("Graph breaks", breaks.map(breakBox));
  part("Called from", x.stack.length ? frames(x.stack.map(i => data.frames[i])) : h("p.soft", null, "no frame of the program"));
  part("Time", phaseBar(t.times || {}), calls.length > 1 && flame(calls.map(r => [r[0], null, r[5], r[4], r[1], r[2], r[3]])));
  if (t.graph) part("Graph", graphBlock(t.graph, t.sizes || {}, t.symbols || []));
  const parts = (t.guards || {}).parts || [];
  if (parts.length) part("Guards", guardTable(t.guards.words || [], parts), h("p.soft", null, plural(t.guards.nodes, "node") + " in the guard program"));
  const code = t.bytecode || {};
  if (code.original || code.transformed) {
    const lines = new Set(breaks.filter(b => b.stack && b.stack.length).map(b => b.stack[b.stack.length - 1]).filter(s => s[1] === t.function.file).map(s => s[2]));
    part("Bytecode", h("div.two", null, h("div", null, h("b", null, "the user's code"), listing(code.original, lines)),
      h("div", null, h("b", null, "transformed"), code.transformed ? listing(code.transformed, lines) : h("p.soft", null, "none: the user's own code runs"))));
  }
  part("Facts", facts(c, t));
  return out;
}
function facts(c, t) {
  const x = compiles[c], p = data.processes[x.p];
  const rows = [["function", t.function.file + ":" + t.function.line], ["backend", t.backend], ["thread", (t.thread_name || "") + " (" + t.thread + ")"],
    ["process", p.pid + ": " + p.command], ["at", new Date(t.time * 1000).toISOString()],
    ["begun", t.attempts === 1 ? "once" : t.attempts + " times: each graph break restarts the translation"]];
  if (x.parent !== null && x.parent !== undefined) rows.push(["led to by", [link(x.parent), " " + name(x.parent)]]);
  const below = [];
  for (let i = 0; i < compiles.length; i++) if (compiles[i].parent === c) below.push(i);
  if (below.length) rows.push(["led to", links(below)]);
  if ((t.resumes || []).length) rows.push(["resume functions", t.resumes.join(", ")]);
  if ((t.inlined || []).length) rows.push(["ran through", t.inlined.join(", ")]);
  if (t.reused_layers) rows.push(["equal layers", t.reused_layers + " not run through again"]);
  if ((t.python_ops || []).length) rows.push(["Python operations", t.python_ops.map(r => r[0] + " × " + r[1]).join(", ")]);
  return h("dl.facts", null, rows.map(([k, v]) => [h("dt", null, k), h("dd", null, v)]));
}
function failureTable(failures) {
  return h("table.failures", null, h("thead", null, h("tr", null, ["why the entry did not serve", "was", "now", "asked for by"].map(t => h("th", null, t)))),
    h("tbody", null, failures.map(f => h("tr", null, h("td.value", null, f.reason || f.guard || f.text, f.reason && f.guard && folded("the guard", f.guard)),
      h("td.value.was", null, f.was ?? ""), h("td.value.found", null, f.found ?? (f.guard ? f.text.slice(f.guard.length + 2) : "")),
      h("td.asked", null, f.file ? [place(f.file, f.line), " ", h("code", null, f.source)] : "")))));
}
// A guard's executable text is long and meant for debugging, so it is shown on request.
const folded = (title, text) => h("details", null, h("summary.soft", null, title), h("div.mono.wrapped", null, text));
function breakBox(b) {
  const stack = b.stack || [], top = stack[0];
  return h("div.break", null, h("div", null, h("span.tag.warn", null, b.code), b.reason), b.hint && h("p.hint.soft", null, "→ " + b.hint),
    b.around ? source(b.around.first, b.around.lines, top[2]) : null,
    stack.length > 0 && frames(stack));
}
// A stack, innermost first; the outer frames of a long one are shown on request.
function frames(stack) {
  const rows = stack.map(([fn, file, line, text]) => h("div", { title: file + ":" + line }, fn, " ", place(file, line), " ", h("span.soft", null, text)));
  const box = h("div.frames.mono", null, rows.slice(0, rows.length > 14 ? 10 : 14));
  if (rows.length > 14) {
    const more = h("button.link", { onclick: () => { more.remove(); add(box, rows.slice(10)); } }, (rows.length - 10) + " outer frames");
    box.append(more);
  }
  return box;
}
function source(first, lines, marked) {
  return h("div.code-block", null, lines.map((text, i) =>
    h("div" + (first + i === marked ? ".marked" : ""), null, h("span.no", null, String(first + i)), text)));
}
const block = text => h("div.code-block", null, text.replace(/\n$/, "").split("\n").map(line => h("div", null, line || " ")));
// The graph as fx prints it. Each value is followed by its sizes, dtype and device, if known. The last lines say what
// the symbols represent.
function graphBlock(text, sizes, symbols) {
  const lines = text.replace(/\n$/, "").split("\n"), names = lines.map(l => /^\s*%?(\w+)\b/.exec(l)?.[1]);
  return h("div.code-block.graph", null, lines.map((line, i) =>
    h("div", null, line || " ", Object.hasOwn(sizes, names[i] ?? "") && h("span.soft.size", null, "  # " + sizes[names[i]]))),
    symbols.map(line => h("div.soft.symbol", null, "# " + line)));
}
// Output of dis in narrower columns: line, mark of a jump target, offset, instruction.
function listing(text, marked) {
  let on = false;
  return h("div.code-block", null, (text || "").replace(/\n+$/, "").split("\n").map(line => {
    const part = /^ *(\d+)? +(>>)? *(\d+) ([A-Z_]+) *(.*)$/.exec(line);
    if (part && part[1]) on = marked.has(+part[1]);
    if (!line.trim()) return null;
    const shown = part ? (part[1] || "").padStart(5) + (part[2] || "").padStart(3) + part[3].padStart(5) + " " + part[4].padEnd(18) + " " + part[5] : line;
    return h("div" + (on ? ".marked" : "") + (part && part[1] ? ".first" : ""), null, shown);
  }));
}
const FIRST_GUARDS = 20;
// The first guards in words; the others, and the executable text, are shown on request.
function guardTable(words, parts) {
  const rows = (words.length ? words : parts).map(([text, file, line, src]) =>
    h("tr", null, h("td.value", null, text), h("td.asked", null, file ? [place(file, line), " ", h("code.soft", null, src)] : "")));
  const table = h("table.guards", null, h("tbody", null, rows.slice(0, FIRST_GUARDS)));
  const all = rows.length > FIRST_GUARDS && h("button", { onclick: () => { table.firstChild.replaceChildren(...rows); all.remove(); } }, "show all " + rows.length);
  return [table, all, words.length > 0 && folded("as executable Python", parts.map(p => p[0]).join(" and\n"))];
}
function phaseBar(times) {
  const total = Object.values(times).reduce((a, b) => a + b, 0) || 1;
  const have = data.phases.filter(p => times[p] > 0);
  const key = p => ".k" + data.phases.indexOf(p);
  return [h("div.phases", null, have.map(p => h("div" + key(p), { style: "width:" + (100 * times[p] / total) + "%", title: p + " " + time(times[p]) }))),
    h("div.legend", null, have.map(p => h("span", null, h("i" + key(p)), p + " " + time(times[p]))))];
}

// ---- time by function ----
const pen = document.createElement("canvas").getContext("2d");
// The text, cut to the width; "" if almost nothing fits.
function fitting(text, width) {
  if (width < 20) return "";
  pen.font = "11px " + getComputedStyle(document.body).fontFamily;
  if (pen.measureText(text).width <= width) return text;
  let n = Math.min(text.length - 1, Math.floor(width / 4));
  while (n > 0 && pen.measureText(text.slice(0, n) + "…").width > width) n--;
  return n > 1 ? text.slice(0, n) + "…" : "";
}
// rows: [parent, function index or null, own time, count, name, file, line]. The outermost function is on top; its
// width is its time.
function flame(rows) {
  const n = rows.length, total = rows.map(r => r[2]), depth = new Array(n).fill(0), at = new Array(n).fill(0), kids = rows.map(() => []);
  const roots = [];
  for (let i = 0; i < n; i++) rows[i][0] >= 0 && rows[i][0] < i ? (depth[i] = depth[rows[i][0]] + 1, kids[rows[i][0]].push(i)) : roots.push(i);
  for (let i = n - 1; i >= 0; i--) if (depth[i]) total[rows[i][0]] += total[i];
  const svgBox = svg("svg", { class: "flame", role: "img", "aria-label": "translation time by path of calls" });
  const colour = i => "var(--c" + (hash(rows[i][4] + rows[i][5]) % 7) + ")";
  const draw = top => {
    svgBox.replaceChildren();
    const W = 1000, H = 18, list = top < 0 ? roots : [top];
    const whole = list.reduce((a, i) => a + total[i], 0) || 1;
    let deepest = 0;
    const put = (i, x, d) => {
      const w = W * total[i] / whole;
      if (w < 0.8 || d > 60) return;
      deepest = Math.max(deepest, d);
      const title = rows[i][4] + "  " + rows[i][5] + ":" + rows[i][6] + "\n" + time(total[i]) + ", " + time(rows[i][2]) + " of it its own, run through " + rows[i][3] + "×";
      const g = svg("g", { onclick: () => draw(i === top ? -1 : i) }, svg("rect", { x, y: d * H, width: w, height: H - 1, rx: 2, style: "fill:" + colour(i) }),
        svg("title", {}));
      g.lastChild.textContent = title;
      const said = fitting(rows[i][4], w - 8);
      if (said) {
        const text = svg("text", { x: x + 4, y: d * H + 13 });
        text.textContent = said;
        g.append(text);
      }
      svgBox.append(g);
      for (const k of kids[i].slice().sort((a, b) => total[b] - total[a])) { put(k, x, d + 1); x += W * total[k] / whole; }
    };
    let x = 0;
    for (const i of list.slice().sort((a, b) => total[b] - total[a])) { put(i, x, 0); x += W * total[i] / whole; }
    const height = (deepest + 1) * H;
    svgBox.setAttribute("viewBox", "0 0 " + W + " " + height);
    svgBox.style.maxHeight = height * 1.4 + "px";
  };
  draw(-1);
  return svgBox;
}
function hash(text) {
  let n = 7;
  for (let i = 0; i < text.length; i++) n = (n * 31 + text.charCodeAt(i)) >>> 0;
  return n;
}
function showFunctions() {
  const body = h("tbody"), columns = [
    ["function", f => f.name, f => h("td", null, h("b", null, f.name), " ", place(f.file, f.line))],
    ["own time", f => f.self_us, f => h("td.num", null, time(f.self_us))],
    ["with callees", f => f.cumulative_us, f => h("td.num", null, time(f.cumulative_us))],
    ["translated", f => f.translated, f => h("td.num", null, String(f.translated))],
    ["run through inside of others", f => f.inlined, f => h("td.num", null, String(f.inlined))],
  ];
  state.sort.functions ??= [2, -1];
  const head = h("tr");
  const refresh = () => {
    const [column, direction] = state.sort.functions, of = columns[column][1];
    const list = data.functions.filter(f => matches(f.name + " " + f.file));
    list.sort((a, b) => direction * (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0));
    body.replaceChildren(...list.slice(0, 500).map(f => h("tr", null, columns.map(([, , cell]) => cell(f)))));
    if (list.length > 500) body.append(h("tr", null, h("td.soft", { colspan: 5 }, (list.length - 500) + " more; search for them")));
    head.replaceChildren(...columns.map(([title], i) => h("th" + (i ? ".num" : ""), { "aria-sort": i === column && (direction < 0 ? "descending" : "ascending") },
      h("button", { onclick: () => { state.sort.functions = [i, i === column ? -direction : i ? -1 : 1]; refresh(); } }, title))));
  };
  const rows = data.flame.map(([parent, f, self, count]) => [parent, f, self, count, data.functions[f].name, data.functions[f].file, data.functions[f].line]);
  const phases = {};
  add(view, [h("h2", null, "Where translating spent its time"),
    rows.length ? [flame(rows), h("p.soft", null, "Functions by call path, the user's on top; width is time. A click shows one alone, another click all of them. What is in no function (decoding, guards, backend, new code) is in each translation's own time.")] : h("p.soft", null, "No times were recorded."),
    search("function or file", refresh), h("table", { id: "function-table" }, h("thead", null, head), body)]);
  refresh();
}

// ---- breaks, recompiles, events, processes ----
function listed(items, text, draw, nothing) {
  const box = h("div");
  const refresh = () => {
    const list = items.filter(i => matches(text(i)));
    box.replaceChildren(...list.slice(0, 300).map(draw));
    if (list.length > 300) box.append(h("p.soft", null, (list.length - 300) + " more; search for them"));
    if (!list.length) box.append(h("div.empty", null, items.length ? "Nothing matches." : nothing));
  };
  add(view, [search("search", refresh), box]);
  refresh();
}
function showBreaks() {
  listed(data.breaks, b => [b.code, b.reason, b.function, b.file, b.source].join(" "), b =>
    h("div.break", null, h("div", null, h("span.tag.warn", null, b.code), b.reason, h("span.count", null, plural(b.translations.length, "time"))),
      b.hint && h("p.hint.soft", null, "→ " + b.hint), h("div.mono", null, b.function, " ", place(b.file, b.line), " ", b.source), h("div", null, links(b.translations))),
    "No graph breaks.");
}
function showRecompiles() {
  listed(data.recompiles, r => [r.function.name, r.function.file, r.reason, r.guard, r.source].join(" "), r =>
    h("div.break", null, h("div", null, h("b", null, r.function.name), " ", place(r.function.file, r.function.line), h("span.count", null, "translated again " + plural(r.translations.length, "time"))),
      h("div.mono.reason", null, r.reason || r.guard), r.reason && folded("the guard", r.guard), r.file && h("div.mono.soft", null, base(r.file) + ":" + r.line + "  " + r.source),
      r.values.length > 0 && h("div.values", { title: "the value that was guarded, and the one that came" },
        r.values.map(([was, found]) => h("span.tag.mono", null, h("span.was", null, was || "?"), " → ", h("span.found", null, found || "?")))),
      h("div", null, links(r.translations))),
    "No function was translated twice.");
}
const EVENTS = { limit: "the cache is full: new cases run in CPython", backend_failed: "a backend failed", graph_failed: "a compiled graph raised where the program does not",
  internal_error: "an internal error" };
function showEvents() {
  listed(data.events.filter(e => e.event !== "end"), e => JSON.stringify(e), e =>
    h("div.break", null, h("div", null, h("span.tag.bad", null, e.event), EVENTS[e.event] || "", e.function && [" in ", h("b", null, e.function.name), " ", place(e.function.file, e.function.line)]),
      e.limit ? h("div.soft", null, "config.cache_size_limit is " + e.limit) : null,
      e.backend && h("div", null, "backend " + e.backend), e.error && block(e.error), (e.failures || []).map(f => h("div.mono", null, f)),
      frames(e.stack || [])),
    "Nothing went wrong.");
}
function showProcesses() {
  add(view, [h("table", null, h("thead", null, h("tr", null, ["process", "started", "command", "translations", "core's counters"].map(t => h("th", null, t)))),
    h("tbody", null, data.processes.map((p, i) => h("tr", null,
      h("td", null, String(p.pid), p.parent !== null && h("div.soft", null, "forked from " + data.processes[p.parent].pid)),
      h("td", null, new Date(p.started * 1000).toISOString().replace("T", " ").slice(0, 19)), h("td.mono", null, p.command),
      h("td.num", null, String(compiles.filter(c => c.p === i).length)),
      h("td.soft", null, p.counters ? Object.entries(p.counters).map(([k, v]) => k + " " + v).join(", ") : "did not end in order")))))]);
}

// ---- the address selects what is shown ----
function fromAddress() {
  const hash = location.hash.slice(1), c = /^c(\d+)$/.exec(hash);
  if (c && +c[1] < compiles.length) {
    const before = state.compile;
    state.compile = +c[1];
    if (state.tab === "compiles" && document.getElementById("detail")) {
      document.querySelector(`[data-compile="${before}"]`)?.setAttribute("aria-pressed", "false");
      document.querySelector(`[data-compile="${state.compile}"]`)?.setAttribute("aria-pressed", "true");
      drawDetail(document.getElementById("detail"));
      return;
    }
    state.tab = "compiles";
  } else if (tabs[hash]) {
    if (state.tab !== hash) state.query = "";
    state.tab = hash;
  }
  show();
}
addEventListener("hashchange", fromAddress);
// Starts with the first translation that has a break, else with the first translation.
if (!location.hash && compiles.length) {
  const first = compiles.findIndex(c => c.nbreaks > 0);
  state.compile = Math.max(first, 0);
}
fromAddress();
})();
