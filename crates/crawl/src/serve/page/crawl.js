// The page of a crawl: its live state, and commands.

const PHASES = {
  crawling: "Crawling",
  paused: "Paused",
  disk_low: "Waiting for free disk space",
  waiting_for_workers: "Waiting for other workers",
  draining: "Finishing requests",
  writing: "Writing the report",
  waiting: "Waiting for the next round",
};

const byId = (id) => document.getElementById(id);
const phase = byId("phase");
const live = byId("live");
const controls = byId("controls");
const result = byId("command-result");
const parked = byId("parked");

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

const duration = (ms) => {
  const seconds = Math.floor(ms / 1000);
  if (seconds === 0) return `${ms} ms`;
  if (seconds < 10 && ms % 1000 !== 0) return `${seconds}.${Math.floor((ms % 1000) / 100)} s`;
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
};

const FORMATS = {
  pages_per_second: (number) => number.toFixed(1),
  elapsed_ms: duration,
};

const setText = (node, text) => {
  // Unchanged text is left alone, so that screen readers don't repeat it and selections stay.
  if (node.textContent !== text) node.textContent = text;
};

// Commands.

const token = () => byId("token")?.value.trim() ?? "";

const send = async (command, values, done) => {
  const headers = { "Content-Type": "application/json" };
  if (token() !== "") headers.Authorization = `Bearer ${token()}`;
  try {
    const response = await fetch(`/api/crawl/${command}`, {
      method: "POST",
      headers,
      body: JSON.stringify(values),
      credentials: "omit",
    });
    const answer = await response.json();
    const error = [answer.error, answer.hint].filter((text) => typeof text === "string").join("; ");
    result.classList.toggle("failed", !response.ok);
    result.textContent = response.ok ? done : error;
    if (!response.ok) console.error(error);
    return response.ok;
  } catch {
    result.classList.add("failed");
    result.textContent = "Can't reach the server.";
    return false;
  }
};

const act = async (command) => {
  const empty = (id) => () => (byId(id).value = "");
  if (command === "pause") return send("pause", {}, "Paused: no new requests are sent.");
  if (command === "resume") return send("resume", {}, "Resumed.");
  if (command === "add") {
    const url = byId("add").value.trim();
    return (await send("add", { url }, `Added ${url}`)) && empty("add")();
  }
  const host = byId("delay-host").value.trim();
  const values = { delay: byId("delay").value.trim(), ...(host === "" ? {} : { host }) };
  return send("delay", values, `The delay is ${values.delay} for ${host === "" ? "all hosts" : host}.`);
};

const parkButton = (command, host) => {
  const button = element("button", { type: "button" }, command === "park" ? "Park" : `Unpark ${host}`);
  if (command === "park") button.setAttribute("aria-label", `Park ${host}`);
  const done = command === "park" ? `${host} is parked.` : `${host} is unparked.`;
  button.addEventListener("click", () => send(command, { host }, done));
  return button;
};

// The state.

const rows = new Map();

const rowOf = (host) => {
  const existing = rows.get(host.host);
  if (existing) return existing;
  const act = element("td", { class: "act" });
  if (controls) act.append(parkButton("park", host.host));
  const cells = [1, 2, 3].map(() => element("td", { class: "n" }));
  const name = element("th", { scope: "row" }, element("bdi", {}, host.host));
  const row = { node: element("tr", {}, name, ...cells, act), cells, act };
  rows.set(host.host, row);
  return row;
};

const drawHosts = (hosts) => {
  const body = byId("hosts");
  const names = new Set(hosts.map((host) => host.host));
  for (const name of [...rows.keys()]) if (!names.has(name)) rows.delete(name);
  const nodes = hosts.map((host) => {
    const row = rowOf(host);
    const next = host.parked ? "parked" : host.next_in_ms === null ? "–" : duration(host.next_in_ms);
    [grouped(host.waiting), duration(host.gap_ms), next].forEach((text, at) => setText(row.cells[at], text));
    row.act.hidden = host.parked;
    return row.node;
  });
  // Rows that stay in their place keep the focus.
  nodes.forEach((node, at) => {
    if (body.children[at] !== node) body.insertBefore(node, body.children[at] ?? null);
  });
  while (body.children.length > nodes.length) body.lastElementChild.remove();
  byId("host-names")?.replaceChildren(...hosts.map((host) => element("option", { value: host.host })));
};

const drawParked = (hosts) => {
  if (!parked || parked.dataset.hosts === hosts.join(" ")) return;
  parked.dataset.hosts = hosts.join(" ");
  parked.hidden = hosts.length === 0;
  parked.replaceChildren("Parked: ", ...hosts.map((host) => parkButton("unpark", host)));
};

const linkTo = (url) =>
  /^https?:/.test(url) ? element("a", { href: url, rel: "nofollow noopener noreferrer" }, url) : url;

const drawLatest = (pages) => {
  const items = pages.map((page) =>
    element("li", {},
      element("span", { class: "status" }, page.status === null ? "–" : String(page.status)),
      element("bdi", {}, linkTo(page.url))));
  byId("latest").replaceChildren(...items);
};

// Shows only the button, Pause or Resume, that has an effect.
const drawPaused = (state) => {
  if (!controls) return;
  const isEnding = ["draining", "writing"].includes(state.phase);
  controls.querySelector("[data-do=pause]").hidden = state.paused || isEnding;
  controls.querySelector("[data-do=resume]").hidden = !state.paused || isEnding;
};

// The report is rendered by the server alone. A newer one replaces it, unless someone is using it.

const REPORT_AGE_MS = 2000;
const report = byId("report");
let loadedAt = performance.now();
let loading = null;

const isReportInUse = () => {
  const selection = getSelection();
  const isSelected = !selection.isCollapsed && report.contains(selection.anchorNode);
  return isSelected || (report !== document.activeElement && report.contains(document.activeElement));
};

const nameOf = (details) => details.querySelector("summary").textContent.replace(/[\d,]+/g, "");

const replaceReport = (page) => {
  const newer = page.getElementById("report");
  if (!newer) return;
  setText(byId("waits"), page.getElementById("waits").textContent);
  if (isReportInUse()) return;
  const open = new Set([...report.querySelectorAll("details[open]")].map(nameOf));
  report.replaceChildren(...newer.childNodes);
  for (const details of report.querySelectorAll("details")) details.open = open.has(nameOf(details));
  makeSortable(report);
};

const loadReport = () => {
  const request = new XMLHttpRequest();
  request.open("GET", location.pathname);
  request.responseType = "document";
  request.addEventListener("loadend", () => {
    loading = null;
    loadedAt = performance.now();
  });
  request.addEventListener("load", () => request.status === 200 && replaceReport(request.response));
  request.send();
};

const scheduleReport = () => {
  const wait = loadedAt + REPORT_AGE_MS - performance.now();
  loading ??= setTimeout(loadReport, Math.max(0, wait));
};

const draw = (update) => {
  if (live.hidden !== !update.running || update.running) scheduleReport();
  live.hidden = !update.running;
  const state = update.state;
  if (!state) {
    delete phase.dataset.phase;
    setText(phase, "No crawl is running");
    return;
  }
  phase.dataset.phase = state.phase;
  setText(phase, PHASES[state.phase] ?? state.phase);
  for (const node of live.querySelectorAll("[data-live]")) {
    const value = state[node.dataset.live];
    setText(node, (FORMATS[node.dataset.live] ?? grouped)(value));
  }
  drawPaused(state);
  drawHosts(state.hosts);
  drawParked(state.parked);
  drawLatest(state.latest);
};

if (controls) {
  controls.hidden = false;
  controls.addEventListener("submit", (event) => event.preventDefault());
  controls.addEventListener("click", (event) => {
    const command = event.target.closest("button")?.dataset.do;
    if (command) act(command);
  });
  // Enter in a field presses the button next to it.
  controls.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.target instanceof HTMLInputElement)) return;
    event.preventDefault();
    event.target.closest("p").querySelector("button")?.click();
  });
}

new EventSource("/api/crawl/events").addEventListener("message", (event) => draw(JSON.parse(event.data)));
