import { Composer, isScalar, Lexer, Parser, type CST, type Document } from 'yaml';
import { buildTree, MAX_DEPTH, reportDepth } from './build-tree';
import type { ProblemReport } from '../problems/problem-report';
import { DEFAULT_ADVICE, reportSyntax } from './report-syntax';
import type { SourceText } from '../problems/source-text';
import type { YamlNode } from './yaml-tree';

/**
 * The library provides structure only: `yaml-scalar.ts` derives types from the text, and repeated keys and merges have rules
 * of their own.
 */
const OPTIONS = {
  version: '1.1',
  schema: 'failsafe',
  uniqueKeys: false,
  logLevel: 'silent',
  prettyErrors: false,
} as const;

/**
 * Reads the first document of a text; an empty scalar when the text has only white space and comments. Returns `undefined` when
 * it cannot be read; the report has the reason.
 */
export function parseYaml(source: SourceText, report: ProblemReport): YamlNode | undefined {
  try {
    return readDocument(source, report);
  } catch (error) {
    const start = { offset: 0, end: 0 };
    const message = `error loading config file: ${String(error)}`;
    if (error instanceof NestedTooDeeply) reportDepth(source, { offset: error.offset, end: error.offset + 1 }, report);
    else report.add(source, start, { code: 'yaml-syntax', message, advice: DEFAULT_ADVICE });
    return undefined;
  }
}

function readDocument(source: SourceText, report: ProblemReport): YamlNode | undefined {
  const documents = new Composer(OPTIONS).compose(tokensOf(source.text));
  const first = documents.next();
  if (first.done === true) return buildTree(null, source, report);
  const document = first.value;
  if (reportSyntax(document, source, report)) return undefined;
  reportSecondDocument(documents, source, report);
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
 * The tokens of a text, as `Parser.parse` returns them, up to {@link MAX_PARSED_DEPTH}: the library composes a document after reading
 * all of it, recursively, which for millions of levels takes gigabytes and then overflows the stack.
 */
function* tokensOf(text: string): Generator<CST.Token, void> {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    if (parser.stack.length > MAX_PARSED_DEPTH) throw new NestedTooDeeply(parser.offset);
    yield* parser.next(lexeme);
  }
  yield* parser.end();
}

function reportSecondDocument(rest: Iterable<Document.Parsed>, source: SourceText, report: ProblemReport): void {
  for (const document of rest) {
    if (isEmpty(document)) continue;
    const [offset] = document.range;
    report.add(
      source,
      { offset, end: offset + 3 },
      {
        code: 'second-document',
        message: 'a second document starts here and is ignored',
        advice: 'Give each domain its own file: only the text before this `---` or `...` is read.',
      },
    );
    return;
  }
}

function isEmpty({ contents, errors }: Document.Parsed): boolean {
  const nothing = contents === null || (isScalar(contents) && contents.source === '' && contents.type === 'PLAIN');
  return nothing && errors.length === 0;
}
