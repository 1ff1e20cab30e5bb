import { Composer, isScalar, Lexer, Parser, visit, type CST, type Document, type YAMLError } from 'yaml';
import { excerpt } from '../../../text/excerpt';
import { PROBLEMS, type ProblemDetails } from '../problems/problem';
import type { Report, SourceRange, SourceText } from '../problems/source-text';
import { buildTree, closingQuote, MAX_DEPTH, NEVER_CLOSED, TOO_DEEP } from './build-tree';
import type { YamlNode } from './yaml-tree';

/**
 * The library provides structure only: `yaml-tree.ts` derives types from the text, and repeated keys and merges have
 * rules of their own.
 */
const OPTIONS = {
  version: '1.1',
  schema: 'failsafe',
  uniqueKeys: false,
  logLevel: 'silent',
  prettyErrors: false,
} as const;

/**
 * Reads the first document of a text; an empty scalar when the text has only white space and comments. Returns
 * `undefined` when it cannot be read; the report has the reason.
 */
export function parseYaml(source: SourceText, report: Report): YamlNode | undefined {
  const { stackTraceLimit } = Error;
  try {
    // The library makes an error for each character of `}}}…`; their stack traces would take a minute for each MiB.
    Error.stackTraceLimit = 0;
    return readDocument(source, report);
  } catch (error) {
    const message = `error loading config file: ${String(error)}`;
    if (error instanceof NestedTooDeeply) report({ offset: error.offset, end: error.offset + 1 }, TOO_DEEP);
    else report({ offset: 0, end: 0 }, { code: 'yaml-syntax', message });
    return undefined;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function readDocument(source: SourceText, report: Report): YamlNode | undefined {
  const documents = new Composer(OPTIONS).compose(tokensOf(source.text));
  const first = documents.next();
  if (first.done === true) return buildTree(null, source, report);
  const document = first.value;
  if (reportSyntax(document, source, report)) return undefined;
  reportSecondDocument(documents, report);
  return buildTree(document.contents, source, report);
}

/** Thrown where a text is nested deeper than its tree may be. */
class NestedTooDeeply extends Error {
  constructor(readonly offset: number) {
    super();
  }
}

/** More levels than a tree may have, so that a tree that is only somewhat too deep is reported with its exact place. */
const MAX_PARSED_DEPTH = MAX_DEPTH + 100;

/**
 * The tokens of a text, as `Parser.parse` returns them, up to {@link MAX_PARSED_DEPTH}: the library composes a document
 * after reading all of it, recursively, which for millions of levels takes gigabytes and then overflows the stack.
 */
function* tokensOf(text: string): Generator<CST.Token, void> {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    if (parser.stack.length > MAX_PARSED_DEPTH) throw new NestedTooDeeply(parser.offset);
    yield* parser.next(lexeme);
  }
  yield* parser.end();
}

function reportSecondDocument(rest: Iterable<Document.Parsed>, report: Report): void {
  for (const document of rest) {
    if (isEmpty(document)) continue;
    const [offset] = document.range;
    const message = 'a second document starts here and is ignored';
    report({ offset, end: offset + 3 }, { code: 'second-document', message });
    return;
  }
}

function isEmpty({ contents, errors }: Document.Parsed): boolean {
  const nothing = contents === null || (isScalar(contents) && contents.source === '' && contents.type === 'PLAIN');
  return nothing && errors.length === 0;
}

/** The library quotes unexpected input, however long it is. In characters. */
const MAX_MESSAGE_LENGTH = 200;

const UNCLOSED_FLOW = 'Close every `{` with a `}` and every `[` with a `]`.';

const ADVICE: Partial<Record<YAMLError['code'], string>> = {
  BAD_ALIAS: 'Quote the value ("*"): an unquoted `*` starts an alias.',
  BAD_INDENT: 'Give all keys of one mapping, and all dashes of one list, the same indentation.',
  BAD_SCALAR_START: 'Quote the value.',
  BLOCK_AS_IMPLICIT_KEY: 'Quote the value if it contains `: `; otherwise correct the indentation.',
  MULTILINE_IMPLICIT_KEY: 'Write `key: value`, with a space after the colon.',
};

/** Reports the syntax errors of a document; returns false when it has none. */
function reportSyntax(document: Document.Parsed, source: SourceText, report: Report): boolean {
  // Warnings about tags are left to the tree builder; go-yaml 2 rejects everything else that the library only warns
  // about.
  const warnings = document.warnings.filter(({ code }) => code !== 'TAG_RESOLVE_FAILED');
  const errors: readonly YAMLError[] = [...document.errors.filter(isError), ...warnings];
  const lines = new Set<number>();
  let quoteStarts: ReadonlyMap<number, number> | undefined;
  let quotedUntil = 0;
  for (const error of errors) {
    // Further errors on the same line, or in the same quoted value, are mostly consequences of the first.
    const line = source.lineOf(error.pos[0]);
    if (!lines.has(line) && error.pos[0] >= quotedUntil) {
      quoteStarts ??= quotedValues(document);
      const quote = isUnclosed(error) ? quoteStarts.get(error.pos[0]) : undefined;
      const {
        range,
        details,
        until = quotedUntil,
      } = quote === undefined ? describeError(error, source) : describeQuote(source, quote);
      report(range, details);
      quotedUntil = until;
    }
    lines.add(line);
  }
  if (errors.length > 0) return true;
  const { explicit, version } = document.directives.yaml;
  if (explicit !== true || version === '1.1') return false;
  const offset = Math.max(0, source.text.indexOf('%YAML'));
  const message = `error loading config file: found incompatible YAML document: version ${version}`;
  report({ offset, end: offset + 5 }, { code: 'yaml-version', message });
  return true;
}

/**
 * Whether go-yaml 2 also rejects what the library rejects: not a comment directly after a quoted value or a bracket.
 */
function isError({ code, message }: YAMLError): boolean {
  return code !== 'MISSING_CHAR' || !message.startsWith('Comments must be separated');
}

interface SyntaxProblem {
  readonly range: SourceRange;
  readonly details: ProblemDetails;
  /** Where a quoted value probably ends: errors before that are consequences. */
  readonly until?: number;
}

function describeError(error: YAMLError, { text }: SourceText): SyntaxProblem {
  const { code, pos } = error;
  const [offset, end] = pos;
  if (code === 'TAB_AS_INDENT') {
    const message = 'error loading config file: found a tab in the indentation';
    return { range: { offset, end }, details: { code: 'tab-indentation', message } };
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
  return ADVICE[code] ?? PROBLEMS['yaml-syntax'].advice;
}

function syntaxMessage({ message }: YAMLError): string {
  return `error loading config file: ${excerpt(message.replaceAll(/\s+/g, ' '), MAX_MESSAGE_LENGTH)}`;
}

/** Whether a quoted value has no closing quote. */
function isUnclosed({ code, message }: YAMLError): boolean {
  return code === 'MISSING_CHAR' && message.startsWith('Missing closing');
}

/**
 * By the offset of its end, where each quoted value of a document starts: collected once, as thousands of them can be
 * unclosed.
 */
function quotedValues(document: Document.Parsed): ReadonlyMap<number, number> {
  const starts = new Map<number, number>();
  visit(document, {
    Scalar(_, { type, range }) {
      if ((type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE') && range) starts.set(range[1], range[0]);
    },
  });
  return starts;
}

/** What may follow a quoted value on its line. */
const AFTER_VALUE = /[ \t]*(?:[\r\n#,\]}]|$)/y;

/**
 * Describes a quoted value that the library cannot read to its end. That may also be one that is closed, but has a line
 * that is not indented deeper than its key, which go-yaml 2 accepts.
 */
function describeQuote(source: SourceText, offset: number): SyntaxProblem {
  const range = { offset, end: offset + 1 };
  const closing = closingQuote(source.text, offset);
  AFTER_VALUE.lastIndex = (closing ?? 0) + 1;
  if (closing === undefined || !AFTER_VALUE.test(source.text)) {
    return { range, details: NEVER_CLOSED, until: offset + 1 };
  }
  const lastLine = source.describe({ offset: closing, end: closing + 1 });
  const details: ProblemDetails = {
    code: 'yaml-syntax',
    message: 'error loading config file: a quoted value has a line that is not indented deeper than its key',
    advice:
      `Indent all lines of the value up to ${lastLine}, where the next quote is; if that is another ` +
      `value's, close this one.`,
  };
  return { range, details, until: closing + 1 };
}
