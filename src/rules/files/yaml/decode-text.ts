import type * as Yaml from 'yaml';
import { type ProblemReport, SourceText } from '../problems/source-text';

/** Characters that YAML does not allow, not even quoted: control characters other than tab, LF, CR and NEL. */
// oxlint-disable-next-line no-control-regex -- the expression looks for control characters
const NOT_PRINTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ufeff\ufffe\uffff]/;

/**
 * Line breaks of YAML 1.1 that are read as LF, each one code unit: a CR alone, and NEL. The Go service breaks lines at
 * them, whereas the YAML library reads them as text, which would then silently be part of a value.
 */
const OTHER_LINE_BREAK = /\r(?!\n)|\u0085/g;

/** The beginning of a line with which version control separates the sides of a conflict: no line of YAML for rules. */
export const CONFLICT_MARKER = /^(?:<{7}|\|{7}|={7}|>{7})(?:[ \r]|$)/m;

/** The line and paragraph separators: line breaks of YAML 1.1, each one code unit. */
const SEPARATORS = /[\u2028\u2029]/g;

/**
 * Decodes a file, which must be UTF-8. Every line break of the text is LF or CRLF, or in quotes a separator. Undefined
 * when it cannot be decoded; the report has the reason.
 */
export function decodeText(file: string, content: Uint8Array, report: ProblemReport): SourceText | undefined {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    reportEncoding(sourceOf(file, new TextDecoder('utf-8').decode(content)), content, report);
    return undefined;
  }
  const source = sourceOf(file, text);
  const marker = text.search(CONFLICT_MARKER);
  if (marker >= 0) {
    const message = 'error loading config file: this line is the marker of a merge conflict';
    report.add(source, { offset: marker, end: marker + 7 }, { code: 'merge-conflict', message });
    return undefined;
  }
  const wrong = NOT_PRINTABLE.exec(text);
  if (wrong === null) return source;
  const code = wrong[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  const message = `error loading config file: control characters are not allowed, but the file contains U+${code}`;
  report.add(source, { offset: wrong.index, end: wrong.index + 1 }, { code: 'control-character', message });
  return undefined;
}

/** Offsets stay as they are, because each line break is replaced by one of the same length. */
function sourceOf(file: string, text: string): SourceText {
  return new SourceText(file, breakAtSeparators(text.replaceAll(OTHER_LINE_BREAK, '\n')));
}

/** @param source the text with U+FFFD for what is not valid */
function reportEncoding(source: SourceText, content: Uint8Array, report: ProblemReport): void {
  const isUtf16 = (content[0] === 0xff && content[1] === 0xfe) || (content[0] === 0xfe && content[1] === 0xff);
  const position = firstInvalidByte(content);
  const offset = new TextDecoder('utf-8').decode(content.subarray(0, position)).length;
  const shown = (content[position] ?? 0).toString(16).padStart(2, '0');
  const reason = isUtf16
    ? 'the file is UTF-16'
    : `the file is not valid UTF-8: unexpected byte 0x${shown} at position ${position}`;
  const message = `error loading config file: ${reason}`;
  report.add(source, { offset, end: offset + 1 }, { code: 'invalid-utf8', message });
}

/** The position of the first byte of the first character that is not valid. */
function firstInvalidByte(content: Uint8Array): number {
  const decoded = new TextEncoder().encode(new TextDecoder('utf-8', { ignoreBOM: true }).decode(content));
  let position = 0;
  while (position < content.length && decoded[position] === content[position]) position += 1;
  // The first bytes of the character may be those of U+FFFD too.
  while (((decoded[position] ?? 0) & 0xc0) === 0x80) position -= 1;
  return position;
}

/**
 * Replaces the line and paragraph separators outside of quoted values by LF. The Go service breaks lines at them, and
 * keeps those of a quoted value; the YAML library reads all of them as text. Offsets stay as they are.
 */
function breakAtSeparators(text: string): string {
  if (text.search(SEPARATORS) === -1) return text;
  // Loaded only here: see `parseAnyYaml`.
  const { Lexer } = require('yaml') as typeof Yaml;
  let broken = '';
  for (const lexeme of new Lexer().lex(text)) {
    if (LEXER_MARKS.has(lexeme)) continue;
    const isQuoted = lexeme.startsWith('"') || lexeme.startsWith("'");
    broken += isQuoted ? lexeme : lexeme.replaceAll(SEPARATORS, '\n');
  }
  return broken;
}

/**
 * What the lexer inserts: the start of a document, a missing end of a flow collection, and the mark of a scalar without
 * quotes.
 */
const LEXER_MARKS: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001f']);
