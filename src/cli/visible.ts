/** A text of a server on one line, without control characters, which a terminal would interpret. */
export function visible(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '\ufffd');
}

/** The lines of an output that has texts of a server. */
export function visibleLines(lines: readonly string[]): string {
  return lines.map(visible).join('\n');
}

/** Indented JSON, in which also those control characters are escaped that JSON allows. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value, null, 2).replaceAll(/[\u007f-\u009f]/g, (character) => {
    return `\\u00${character.charCodeAt(0).toString(16)}`;
  });
}
