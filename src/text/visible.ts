/**
 * What a terminal interprets, what ends a line, and what shows a text in another order than it has: control characters
 * except tabs and line feeds, line separators, and marks of direction.
 */
// oxlint-disable-next-line no-control-regex -- the expression looks for control characters
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Escapes such characters, as `\u202e`, in what is printed: texts of callers, servers and files must not say more than
 * they show.
 */
export function visible(text: string): string {
  return text.replaceAll(INVISIBLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The same for a text that is a part of a line. */
export function visibleLine(text: string): string {
  return visible(text)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\t', String.raw`\t`);
}

/** The same for several lines. */
export function visibleLines(lines: readonly string[]): string {
  return lines.map(visibleLine).join('\n');
}

/**
 * The same for JSON, in which the first control characters are escaped already: of ASCII only one is left, which is
 * found faster.
 */
export function visibleJson(json: string): string {
  return Buffer.byteLength(json) === json.length && !json.includes('\u007f') ? json : visible(json);
}
