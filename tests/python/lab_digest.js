// What tests compute from a run of the laboratory's worker, in Node and in Chromium.

/** The SHA-256 of the tables of a run as test_lab_engine.py computes it. */
async function digestOf({ tables, internals, subflowInternals }) {
  const parts = [];
  const write = (text) => parts.push(new TextEncoder().encode(text));
  const texts = { internals, subflow_internals: subflowInternals };
  for (const [table, columns] of Object.entries(tables)) {
    for (const [column, values] of Object.entries(columns)) {
      write(`${table}.${column}:${values.length}\n`);
      if (column === "name") write([...values].map((key) => texts[table][key]).join("\n"));
      else parts.push(new Uint8Array(values.map((value) => (Number.isNaN(value) ? -1 : value)).buffer));
    }
  }
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  const hash = await crypto.subtle.digest("SHA-256", all);
  return [...new Uint8Array(hash)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Runs tasks, `{toml, code, seed}`, one after the other; `ask` gives a task to the worker. */
async function runTasks(tasks, ask, more = () => ({})) {
  const found = [];
  for (const { toml, code = "", seed } of tasks) {
    const source = { toml, code, traces: {}, beside: "" };
    const output = await ask({ kind: "run", source, seed });
    const checked = await ask({ kind: "check", source });
    found.push({ digest: await digestOf(output), packets: output.dataPackets, ...more(output, checked) });
  }
  return found;
}

/** The answers of a worker, by the numbers of their tasks. */
function asking(post) {
  const waiting = new Map();
  let last = 0;
  const receive = ({ id, answer, failure }) => {
    if (answer) waiting.get(id).done(answer);
    else if (failure) waiting.get(id).fail(new Error(failure));
  };
  const ask = (task) => new Promise((done, fail) => (waiting.set(++last, { done, fail }), post({ id: last, task })));
  return { ask, receive };
}

/** In a page of the laboratory: a worker of its own. */
async function workerOf() {
  const text = (id) => document.getElementById(id).textContent;
  const packed = Uint8Array.from(atob(text("engine")), (char) => char.charCodeAt(0));
  const wasm = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  const worker = new Worker(URL.createObjectURL(new Blob([text("worker")], { type: "text/javascript" })));
  const { ask, receive } = asking((message) => worker.postMessage(message));
  worker.onmessage = ({ data }) => receive(data);
  worker.postMessage({ wasm });
  return { ask, end: () => worker.terminate() };
}

/** Runs tasks in a worker, and adds the page's metrics. */
async function runInPage(tasks) {
  const { ask, end } = await workerOf();
  // JSON has neither NaN nor Infinity: null stands for both.
  const more = (output, { scenario }) => {
    const windows = lab.throughputs(output, scenario).rates;
    const jain = lab.jainOverTime(output, scenario).index;
    return JSON.parse(JSON.stringify({ summary: lab.summarise(output, scenario), windows, jain }));
  };
  const found = await runTasks(tasks, ask, more);
  end();
  return found;
}
