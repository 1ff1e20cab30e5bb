/**
 * What a terminal interprets, what ends a line, and what is shown in another place or not at all: control characters
 * except tabs and line feeds, line separators, halves of surrogate pairs, and characters without a glyph, such as marks
 * of direction and tags. Joiners and variation selectors stay, because emoji and several scripts are written with them.
 * The last alternative begins a command to Azure Pipelines (`##vso[`), TeamCity or GitHub Actions (`##[`) in a log.
 */
const SPECIAL = /(?![\t\n\p{Join_C}\ufe00-\ufe0f])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{DI}]|#(?=#\w{0,20}\[)/gu;

/**
 * Escapes what is invisible or a command, as `\u202e`, in what is printed: texts of callers, servers and files must not
 * say more than they show.
 */
export function visible(text: string): string {
  return text.replaceAll(SPECIAL, (character) => character.split('').map(escapedUnit).join(''));
}

function escapedUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** A text of callers, servers or files as a part of one line: invisible characters, line feeds and tabs are escaped. */
export function visibleLine(text: string): string {
  return visible(text)
    .replaceAll('\n', String.raw`\n`)
    .replaceAll('\t', String.raw`\t`);
}

/**
 * Lines that quote texts of callers, servers or files, which can neither add a further line nor make one a command to
 * GitHub Actions, which begins with `::`.
 */
export function visibleLines(lines: readonly string[]): string {
  return lines
    .map((line) => visibleLine(line).replace(/^( *):(?=:)/, (_, blanks) => blanks + escapedUnit(':')))
    .join('\n');
}

/** Escapes what is invisible in JSON, whose other control characters are escaped: of ASCII only one is left. */
export function visibleJson(json: string): string {
  return Buffer.byteLength(json) === json.length && !json.includes('\u007f') ? json : visible(json);
}
