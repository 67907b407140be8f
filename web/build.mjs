// Builds the page into one file: node build.mjs ENGINE.wasm PAGE.html
// The engine, compressed, and the worker's script are text in the page. Same sources, same bytes.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const root = dirname(fileURLToPath(import.meta.url));
const made = resolve(root, "../target/lab/made");
const [wasm, page] = process.argv.slice(2).map((path) => resolve(path));

const alias = [
  { find: "engine", replacement: resolve(root, "../target/lab/engine/engine.js") },
  { find: /^made\//, replacement: `${made}/` },
];

/** Bundles an entry into one script, and its styles. */
async function bundle(entry) {
  const result = await build({
    root,
    configFile: false,
    logLevel: "warn",
    resolve: { alias },
    build: {
      write: false,
      target: "es2022",
      cssCodeSplit: false,
      modulePreload: false,
      lib: { entry: resolve(root, entry), formats: ["iife"], name: "lab", cssFileName: "lab" },
    },
  });
  const [{ output }] = result;
  const text = (test) => output.filter(({ fileName }) => test.test(fileName)).map((one) => one.code ?? one.source);
  return { code: text(/\.js$/).join("\n"), css: text(/\.css$/).join("\n") };
}

const text = (code) => code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--").trim();

const packed = gzipSync(readFileSync(wasm), { level: 9 }).toString("base64");
const worker = await bundle("src/engine/worker.ts");
const { code, css } = await bundle("src/main.tsx");
const script = text(code);
const hash = createHash("sha256").update(script).digest("base64");
const html = readFileSync(resolve(root, "index.html"), "utf8")
  .replace("SCRIPT-HASH", () => `'sha256-${hash}'`)
  .replace("/* style */", () => css.trim())
  .replace("/* engine */", () => packed)
  .replace("/* worker */", () => text(worker.code))
  .replace("/* script */", () => script);
writeFileSync(page, html);
console.log(`${page}: ${html.length} bytes, of which the engine ${packed.length}`);
