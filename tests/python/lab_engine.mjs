// Runs experiments in the worker of the laboratory's page: node lab_engine.mjs WORKER.js ENGINE.wasm
// Reads JSON, a list of {toml, code, seed}; writes the SHA-256 of each run's tables.

import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

const [script, wasm] = process.argv.slice(2);
runInThisContext(readFileSync(new URL("lab_digest.js", import.meta.url), "utf8"));
globalThis.self = globalThis;
const { ask, receive } = asking((data) => globalThis.onmessage({ data }));
globalThis.postMessage = receive;
runInThisContext(readFileSync(script, "utf8"));
const bytes = readFileSync(wasm);
globalThis.onmessage({ data: { wasm: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) } });
const found = await runTasks(JSON.parse(readFileSync(0, "utf8")), ask);
console.log(JSON.stringify({ found, user: process.cpuUsage().user / 1e6 }));
process.exit(0);
