import { Composer, isScalar, Parser, type Document } from 'yaml';
import { buildTree, reportDepth } from './build-tree';
import type { ProblemReport } from '../problems/problem-report';
import { DEFAULT_ADVICE, reportSyntax } from './report-syntax';
import type { SourceText } from '../problems/source-text';
import type { YamlNode } from './yaml-tree';

/**
 * Types are read from the text by ourselves (`yaml-scalar.ts`) and repeated keys and merges belong to the rules, so the
 * library is asked for structure alone.
 */
const OPTIONS = {
  version: '1.1',
  schema: 'failsafe',
  uniqueKeys: false,
  logLevel: 'silent',
  prettyErrors: false,
} as const;

/**
 * Reads the first document of a text. `undefined` when it cannot be read (the report says why), `null` when there is
 * nothing in it but white space and comments.
 */
export function parseYaml(source: SourceText, report: ProblemReport): YamlNode | null | undefined {
  try {
    return readDocument(source, report);
  } catch (error) {
    const start = { offset: 0, end: 0 };
    // The library descends by calling itself, so it is the stack that bounds it.
    if (error instanceof RangeError) reportDepth(source, start, report);
    else report.add(source, start, 'yaml-syntax', `error loading config file: ${String(error)}`, DEFAULT_ADVICE);
    return undefined;
  }
}

function readDocument(source: SourceText, report: ProblemReport): YamlNode | null | undefined {
  const documents = new Composer(OPTIONS).compose(new Parser().parse(source.text));
  const first = documents.next();
  if (first.done === true) return null;
  const document = first.value;
  if (reportSyntax(document, source, report)) return undefined;
  const goesOn = reportSecondDocument(documents, source, report);
  if (isEmpty(document) && !goesOn) return null;
  return buildTree(document.contents, source, report);
}

function reportSecondDocument(rest: Iterable<Document.Parsed>, source: SourceText, report: ProblemReport): boolean {
  for (const document of rest) {
    if (isEmpty(document)) continue;
    const [offset] = document.range;
    const message = 'a second document begins here, and is not read';
    const advice = 'Give each domain a file of its own: only what stands before this `---` or `...` counts.';
    report.add(source, { offset, end: offset + 3 }, 'second-document', message, advice);
    return true;
  }
  return false;
}

function isEmpty({ contents, errors }: Document.Parsed): boolean {
  const nothing = contents === null || (isScalar(contents) && contents.source === '' && contents.type === 'PLAIN');
  return nothing && errors.length === 0;
}
