import { visit, type Document, type YAMLError } from 'yaml';
import type { ProblemReport } from '../problems/problem-report';
import type { SourceText } from '../problems/source-text';

/** The library quotes what it did not expect, however long it is. */
const LONGEST_MESSAGE = 200;

/** What to do when nothing better can be said. */
export const DEFAULT_ADVICE = 'Correct the YAML here; the mistake may begin a little above.';

const UNCLOSED_FLOW = 'Close every `{` with a `}` and every `[` with a `]`.';

const ADVICE: Partial<Record<YAMLError['code'], string>> = {
  BAD_ALIAS: 'Put the value in quotes ("*"): an unquoted `*` begins an alias.',
  BAD_INDENT: 'Give all keys of one mapping, and all dashes of one list, the same indentation.',
  BAD_SCALAR_START: 'Put the value in quotes.',
  BLOCK_AS_IMPLICIT_KEY: 'Put a value in quotes when it has `: ` in it; otherwise correct the indentation.',
  MULTILINE_IMPLICIT_KEY: 'Write `key: value`, with a space after the colon.',
};

/** Says what is wrong with a document as YAML; false when nothing is. */
export function reportSyntax(document: Document.Parsed, source: SourceText, report: ProblemReport): boolean {
  // Of tags the library warns, and they are looked at elsewhere; what else it only warns of, go-yaml 2 refuses.
  const warnings = document.warnings.filter(({ code }) => code !== 'TAG_RESOLVE_FAILED');
  const errors: readonly YAMLError[] = [...document.errors, ...warnings];
  const lines = new Set<number>();
  for (const error of errors) {
    // What the library says further of the same line is mostly a consequence.
    const line = source.lineOf(error.pos[0]);
    if (!lines.has(line)) reportError(error, document, source, report);
    lines.add(line);
  }
  if (errors.length > 0) return true;
  const { explicit, version } = document.directives.yaml;
  if (explicit !== true || version === '1.1') return false;
  const message = `error loading config file: found incompatible YAML document: version ${version}`;
  const at = Math.max(0, source.text.indexOf('%YAML'));
  const advice = 'Take the %YAML line out: rule files are YAML 1.1.';
  report.add(source, { offset: at, end: at + 5 }, 'yaml-version', message, advice);
  return true;
}

function reportError(error: YAMLError, document: Document.Parsed, source: SourceText, report: ProblemReport): void {
  const { code, pos } = error;
  const [offset, end] = pos;
  if (code === 'TAB_AS_INDENT') {
    const message = 'error loading config file: found a tab where only spaces may indent';
    report.add(source, { offset, end }, 'tab-indentation', message, 'Indent with spaces.');
    return;
  }
  const isUnclosed = code === 'MISSING_CHAR' && error.message.startsWith('Missing closing');
  const quote = isUnclosed ? openedBefore(document, offset) : undefined;
  if (quote !== undefined) {
    const message = 'error loading config file: the quote that opens here is never closed';
    report.add(source, { offset: quote, end: quote + 1 }, 'yaml-syntax', message, 'Close it.');
    return;
  }
  // Of a line that is indented wrongly the library points at the indentation.
  const place = { offset: skipSpaces(source.text, offset), end };
  report.add(source, place, 'yaml-syntax', syntaxMessage(error), adviceFor(error));
}

function skipSpaces(text: string, offset: number): number {
  let at = offset;
  while (text[at] === ' ') at += 1;
  return at;
}

function adviceFor({ code, message }: YAMLError): string {
  if (code === 'BAD_INDENT' && message.startsWith('Flow')) return UNCLOSED_FLOW;
  return ADVICE[code] ?? DEFAULT_ADVICE;
}

function syntaxMessage({ message }: YAMLError): string {
  const line = message.replaceAll(/\s+/g, ' ');
  return `error loading config file: ${line.length > LONGEST_MESSAGE ? `${line.slice(0, LONGEST_MESSAGE)}…` : line}`;
}

/** Where the last quoted scalar before a place opens. */
function openedBefore(document: Document.Parsed, offset: number): number | undefined {
  let opened: number | undefined;
  visit(document, {
    Scalar(_, { type, range }) {
      const isQuoted = type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE';
      if (isQuoted && range && range[0] < offset) opened = Math.max(opened ?? 0, range[0]);
    },
  });
  return opened;
}
