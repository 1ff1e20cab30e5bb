import type { Document, YAMLError } from 'yaml';
import { excerpt } from '../../../text/excerpt';
import type { ProblemDetails } from '../problems/problem';
import type { ProblemReport } from '../problems/problem-report';
import type { SourceRange, SourceText } from '../problems/source-text';
import { UnclosedQuotes } from './unclosed-quote';

/** The library quotes unexpected input, however long it is. In characters. */
const MAX_MESSAGE_LENGTH = 200;

/** For syntax errors without more specific advice. */
export const DEFAULT_ADVICE = 'Correct the YAML here; the mistake may be a few lines above.';

const UNCLOSED_FLOW = 'Close every `{` with a `}` and every `[` with a `]`.';

const ADVICE: Partial<Record<YAMLError['code'], string>> = {
  BAD_ALIAS: 'Quote the value ("*"): an unquoted `*` starts an alias.',
  BAD_INDENT: 'Give all keys of one mapping, and all dashes of one list, the same indentation.',
  BAD_SCALAR_START: 'Quote the value.',
  BLOCK_AS_IMPLICIT_KEY: 'Quote the value if it contains `: `; otherwise correct the indentation.',
  MULTILINE_IMPLICIT_KEY: 'Write `key: value`, with a space after the colon.',
};

/** Reports the syntax errors of a document; returns false when it has none. */
export function reportSyntax(document: Document.Parsed, source: SourceText, report: ProblemReport): boolean {
  // Warnings about tags are left to the tree builder; go-yaml 2 rejects everything else that the library only warns about.
  const warnings = document.warnings.filter(({ code }) => code !== 'TAG_RESOLVE_FAILED');
  const errors: readonly YAMLError[] = [...document.errors.filter(isError), ...warnings];
  const lines = new Set<number>();
  const quotes = new UnclosedQuotes(document, source);
  let quotedUntil = 0;
  for (const error of errors) {
    // Further errors on the same line, or in the same quoted value, are mostly consequences of the first.
    const line = source.lineOf(error.pos[0]);
    if (!lines.has(line) && error.pos[0] >= quotedUntil) {
      const quote = quotes.describe(error);
      const { range, details } = quote ?? describeError(error, source);
      report.add(source, range, details);
      quotedUntil = quote?.until ?? quotedUntil;
    }
    lines.add(line);
  }
  if (errors.length > 0) return true;
  const { explicit, version } = document.directives.yaml;
  if (explicit !== true || version === '1.1') return false;
  const offset = Math.max(0, source.text.indexOf('%YAML'));
  report.add(
    source,
    { offset, end: offset + 5 },
    {
      code: 'yaml-version',
      message: `error loading config file: found incompatible YAML document: version ${version}`,
      advice: 'Remove the %YAML line: rule files are YAML 1.1.',
    },
  );
  return true;
}

/** Whether go-yaml 2 also rejects what the library rejects: not a comment directly after a quoted value or a bracket. */
function isError({ code, message }: YAMLError): boolean {
  return code !== 'MISSING_CHAR' || !message.startsWith('Comments must be separated');
}

interface SyntaxProblem {
  readonly range: SourceRange;
  readonly details: ProblemDetails;
}

function describeError(error: YAMLError, { text }: SourceText): SyntaxProblem {
  const { code, pos } = error;
  const [offset, end] = pos;
  if (code === 'TAB_AS_INDENT') {
    const message = 'error loading config file: found a tab in the indentation';
    return { range: { offset, end }, details: { code: 'tab-indentation', message, advice: 'Indent with spaces.' } };
  }
  return {
    // For a wrongly indented line, the library's position is the indentation.
    range: { offset: skipSpaces(text, offset), end },
    details: { code: 'yaml-syntax', message: syntaxMessage(error), advice: adviceFor(error) },
  };
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
  return `error loading config file: ${excerpt(message.replaceAll(/\s+/g, ' '), MAX_MESSAGE_LENGTH)}`;
}
