// Runs experiments in the worker of the laboratory's page: node lab_engine.mjs WORKER.js ENGINE.wasm
// Reads JSON, a list of {toml, seed}; writes the SHA-256 of each run's tables.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [script, wasm] = process.argv.slice(2);
const waiting = new Map();
globalThis.self = globalThis;
globalThis.postMessage = (message) => {
  if (!("share" in message)) waiting.get(message.id)(message);
};
runInThisContext(readFileSync(script, "utf8"));
const bytes = readFileSync(wasm);
globalThis.onmessage({ data: { wasm: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) } });

function ask(id, task) {
  return new Promise((done) => {
    waiting.set(id, done);
    globalThis.onmessage({ data: { id, task } });
  });
}

/** The digest of tables as test_lab.py computes it. */
function digest({ tables, internals, subflowInternals }) {
  const hash = createHash("sha256");
  const texts = { internals, subflow_internals: subflowInternals };
  for (const [table, columns] of Object.entries(tables)) {
    for (const [column, values] of Object.entries(columns)) {
      hash.update(`${table}.${column}:${values.length}\n`);
      if (column === "name") {
        hash.update([...values].map((key) => texts[table][key]).join("\n"));
      } else {
        hash.update(new Uint8Array(values.map((value) => (Number.isNaN(value) ? -1 : value)).buffer));
      }
    }
  }
  return hash.digest("hex");
}

const found = [];
for (const [id, { toml, seed }] of JSON.parse(readFileSync(0, "utf8")).entries()) {
  const said = await ask(id, { kind: "run", source: { toml, code: "", traces: {} }, seed });
  if (said.failure) throw new Error(said.failure);
  found.push({ digest: digest(said.answer), packets: said.answer.dataPackets });
}
console.log(JSON.stringify({ found, user: process.cpuUsage().user / 1e6 }));
process.exit(0);
