import type { ProblemReport } from '../problems/problem-report';
import { SourceText } from '../problems/source-text';

/** A file above this is refused: 300,000 rules fit, and reading more would take memory that a service has better uses for. */
export const MAX_FILE_BYTES = 32 * 1024 * 1024;

/** What YAML does not allow in a text, not even quoted: control characters other than tab, line feed, return and next line. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const NOT_PRINTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ufeff\ufffe\uffff]/;

type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be';

/**
 * The text of a file: UTF-8, or UTF-16 where a byte order mark says so. Undefined when it is none; the report says why.
 */
export function decodeText(file: string, content: Uint8Array, report: ProblemReport): SourceText | undefined {
  if (content.length > MAX_FILE_BYTES) {
    const message = `error loading config file: the file has ${content.length} bytes, more than the ${MAX_FILE_BYTES} that are read`;
    const advice = 'Split it into several files; with MERGE_DOMAIN_CONFIG=true they may describe one domain.';
    report.add(new SourceText(file, ''), { offset: 0, end: 0 }, 'file-too-large', message, advice);
    return undefined;
  }
  const encoding = encodingOf(content);
  let text: string;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(content);
  } catch {
    reportFirstInvalidByte(file, content, encoding, report);
    return undefined;
  }
  const source = new SourceText(file, text);
  const wrong = NOT_PRINTABLE.exec(text);
  if (wrong === null) return source;
  const code = wrong[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  const message = `error loading config file: control characters are not allowed, but here is U+${code}`;
  const advice = 'Take it out; inside double quotes it can be written as an escape such as "\\x07".';
  report.add(source, { offset: wrong.index, end: wrong.index + 1 }, 'control-character', message, advice);
  return undefined;
}

function encodingOf(content: Uint8Array): Encoding {
  if (content[0] === 0xff && content[1] === 0xfe) return 'utf-16le';
  if (content[0] === 0xfe && content[1] === 0xff) return 'utf-16be';
  return 'utf-8';
}

function reportFirstInvalidByte(file: string, content: Uint8Array, encoding: Encoding, report: ProblemReport): void {
  // The longest prefix that decodes, by halving; `stream` lets a prefix end within a character.
  let good = 0;
  let bad = content.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (decodes(content.subarray(0, middle), encoding)) good = middle;
    else bad = middle;
  }
  const before = new TextDecoder(encoding).decode(content.subarray(0, good), { stream: true });
  // The prefix may end within a character: then it is the character's first byte that does not belong there.
  const position =
    bomLength(content, encoding) + (encoding === 'utf-8' ? new TextEncoder().encode(before).length : 2 * before.length);
  const source = new SourceText(file, new TextDecoder(encoding).decode(content));
  const byte = (content[position] ?? 0).toString(16).padStart(2, '0');
  const name = encoding.toUpperCase();
  const message = `error loading config file: the file is not ${name}: byte 0x${byte} at position ${position} does not belong here`;
  report.add(
    source,
    { offset: before.length, end: before.length + 1 },
    'invalid-utf8',
    message,
    'Save the file as UTF-8.',
  );
}

function bomLength(content: Uint8Array, encoding: Encoding): number {
  if (encoding !== 'utf-8') return 2;
  return content[0] === 0xef && content[1] === 0xbb && content[2] === 0xbf ? 3 : 0;
}

function decodes(content: Uint8Array, encoding: Encoding): boolean {
  try {
    new TextDecoder(encoding, { fatal: true }).decode(content, { stream: true });
    return true;
  } catch {
    return false;
  }
}
