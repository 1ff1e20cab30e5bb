import { decodeText } from './yaml/decode-text';
import { parsePlainYaml } from './yaml/plain-yaml';
import type * as ParseYaml from './yaml/parse-yaml';
import type { YamlNode } from './yaml/yaml-tree';
import type { Problem } from './problems/problem';
import { ProblemReport, SourceText } from './problems/source-text';
import { type RuleTree, type RuleTreeOptions, readRuleTrees } from './read-rule-trees';
import type { DomainConfig } from '../rule-config';
import { MAX_FILE_BYTES, fileTooLarge } from './size-limits';

export interface RuleFile {
  /** Relative to the rule folder, for messages. */
  readonly path: string;
  /** Empty when the file is too large to be read. */
  readonly content: Uint8Array;
  /** The size in bytes of a file that is too large to be read. */
  readonly tooLarge?: number | undefined;
}

/** What rules are loaded from: files, or an encoded `DiscoveryResponse` of a management server as the only one. */
export type RawRules = readonly RuleFile[];

/** The result of reading rule files. */
export interface ReadResult {
  /** One for each file, in their order, to be used only when there are no errors. */
  readonly configs: readonly DomainConfig[];
  /** The errors of all files. */
  readonly errors: readonly Problem[];
  /** What loads, but has less effect than it seems to have. */
  readonly warnings: readonly Problem[];
}

/**
 * Reads rule files and checks them. Never throws, for any bytes.
 * @param files in the order in which their rules are tried, which is that of their paths
 */
export function readRuleFiles(files: readonly RuleFile[], options: RuleTreeOptions): ReadResult {
  const report = new ProblemReport();
  const configs = readRuleTrees(treesOf(files, report), options, report);
  return { configs, ...report.finish(files.map(({ path }) => path)) };
}

function* treesOf(files: readonly RuleFile[], report: ProblemReport): IterableIterator<RuleTree> {
  for (const { path, content, tooLarge } of files) {
    const bytes = tooLarge ?? content.length;
    if (bytes > MAX_FILE_BYTES) {
      report.add(new SourceText(path, ''), { offset: 0, end: 0 }, fileTooLarge(bytes));
      continue;
    }
    const errorsBefore = report.errorCount;
    const source = decodeText(path, content, report);
    const root = source && (parsePlainYaml(source.text) ?? parseAnyYaml(source, report));
    if (source !== undefined && root !== undefined) yield { source, root };
    // Its rules have been read by now.
    if (source !== undefined && report.errorCount > errorsBefore) reportTemplate(source, report);
  }
}

/** What a template language replaces, where YAML has no text: of Go and Helm, Jinja, ERB. */
const TEMPLATE = /(?<![^\n])[^"'#\n]*?(\{\{[^{}\n]{1,500}\}\}|\{%[^%\n]{1,500}%\}|<%[^%\n]{1,500}%>)/;

/** Says of a file with errors that it is a template, if it is one: its errors are consequences. */
function reportTemplate(source: SourceText, report: ProblemReport): void {
  const found = TEMPLATE.exec(source.text);
  if (found === null) return;
  const end = found.index + found[0].length;
  const range = { offset: end - found[1]!.length, end };
  report.replace(source, range, { code: 'unrendered-template', message: 'this is an unrendered template' });
}

/** Loads the YAML library, 9 MB of memory, only for a file that needs it. */
function parseAnyYaml(source: SourceText, report: ProblemReport): YamlNode | undefined {
  const { parseYaml } = require('./yaml/parse-yaml') as typeof ParseYaml;
  return parseYaml(source, report.of(source));
}
