/** The values of keys, from the JSON Schema of experiment files. */

export interface Schema {
  enum?: unknown[];
  examples?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
}

const listed = (schema: Schema): unknown[] => [...(schema.enum ?? []), ...(schema.examples ?? []), ...(schema.anyOf ?? []).flatMap(listed)];

/** The names and examples that a key has, such as `link.aqm`; a key of no table is one of the experiment. */
export function valuesOf(schema: Schema, key: string): string[] {
  let at: Schema = schema;
  for (const part of key.split(".")) at = (at.items ?? at).properties?.[part] ?? {};
  return listed(at).filter((value) => typeof value === "string");
}
