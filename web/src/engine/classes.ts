/** What is read from a user's code without running it. */

/** The names of its classes; some may be in a comment or a function. Blanks are of one line: `\s` takes quadratic time on empty lines. */
export function classesOf(code: string): string[] {
  const names = [...code.matchAll(/^[ \t]*class[ \t]+(\w+)/gm)].map(([, name]) => name ?? "");
  return [...new Set(names)];
}
