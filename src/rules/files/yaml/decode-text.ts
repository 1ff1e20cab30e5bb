import type { ProblemDetails } from '../problems/problem';
import type { ProblemReport } from '../problems/problem-report';
import { SourceText, type SourceRange } from '../problems/source-text';
import { breakAtSeparators } from './separators';

/** Characters that YAML does not allow, not even quoted: control characters other than tab, LF, CR and NEL. */
// oxlint-disable-next-line no-control-regex -- the expression looks for control characters
const NOT_PRINTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ufeff\ufffe\uffff]/;

/**
 * Line breaks of YAML 1.1 that are read as LF, each one code unit: a CR alone, and NEL. The Go service breaks lines at them, whereas the
 * YAML library reads them as text, which would then silently be part of a value.
 */
const OTHER_LINE_BREAK = /\r(?!\n)|\u0085/g;

type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be';

/**
 * Decodes a file: UTF-8, or UTF-16 when it has a byte order mark of UTF-16. Every line break of the text is LF or CRLF, or in quotes a
 * separator. Undefined when it cannot be decoded; the report has the reason.
 */
export function decodeText(file: string, content: Uint8Array, report: ProblemReport): SourceText | undefined {
  const encoding = encodingOf(content);
  let text: string;
  try {
    text = new TextDecoder(encoding, { fatal: true }).decode(content);
  } catch {
    const source = sourceOf(file, new TextDecoder(encoding).decode(content));
    const { range, position } = firstInvalidByte(content, encoding);
    report.add(source, range, invalidByte(encoding, position, content[position] ?? 0));
    return undefined;
  }
  const source = sourceOf(file, text);
  const wrong = NOT_PRINTABLE.exec(text);
  if (wrong === null) return source;
  report.add(source, { offset: wrong.index, end: wrong.index + 1 }, controlCharacter(wrong[0]));
  return undefined;
}

/** Offsets stay as they are, because each line break is replaced by one of the same length. */
function sourceOf(file: string, text: string): SourceText {
  return new SourceText(file, breakAtSeparators(text.replaceAll(OTHER_LINE_BREAK, '\n')));
}

function encodingOf(content: Uint8Array): Encoding {
  if (content[0] === 0xff && content[1] === 0xfe) return 'utf-16le';
  if (content[0] === 0xfe && content[1] === 0xff) return 'utf-16be';
  return 'utf-8';
}

/** The first byte that cannot be decoded: its position in the file, and its range in the decoded text. */
function firstInvalidByte(
  content: Uint8Array,
  encoding: Encoding,
): { readonly range: SourceRange; readonly position: number } {
  // A binary search for the longest prefix that decodes; `stream` allows a prefix to end within a character.
  let good = 0;
  let bad = content.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (decodes(content.subarray(0, middle), encoding)) good = middle;
    else bad = middle;
  }
  const before = new TextDecoder(encoding).decode(content.subarray(0, good), { stream: true });
  // If the prefix ends within a character, the invalid byte is the first byte of that character.
  const bytesBefore = encoding === 'utf-8' ? new TextEncoder().encode(before).length : 2 * before.length;
  return {
    range: { offset: before.length, end: before.length + 1 },
    position: bomLength(content, encoding) + bytesBefore,
  };
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

function invalidByte(encoding: Encoding, position: number, byte: number): ProblemDetails {
  const shown = byte.toString(16).padStart(2, '0');
  return {
    code: 'invalid-utf8',
    message: `error loading config file: the file is not valid ${encoding.toUpperCase()}: unexpected byte 0x${shown} at position ${position}`,
    advice: 'Save the file as UTF-8.',
  };
}

function controlCharacter(character: string): ProblemDetails {
  const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
  return {
    code: 'control-character',
    message: `error loading config file: control characters are not allowed, but the file contains U+${code}`,
    advice: 'Remove it; inside double quotes it can be written as an escape such as "\\x07".',
  };
}
