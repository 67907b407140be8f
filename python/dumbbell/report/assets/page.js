/* What the scripts of a page share: reading what is packed in it, making elements, telling numbers. */
"use strict";
const page = {
  /** What a <script id> of the page holds, unpacked: JSON, compressed, as base64. */
  async unpack(id) {
    const text = document.getElementById(id).textContent;
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  },

  make(tag, attributes, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  },

  /** A number as a reader wants it: three digits, all of those before the point. */
  said(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  },
};
