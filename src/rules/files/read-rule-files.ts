import type { DomainConfig } from '../rule-config';
import { decodeText } from './yaml/decode-text';
import { parseYaml } from './yaml/parse-yaml';
import { parsePlainYaml } from './yaml/plain-yaml';
import type { Problem } from './problems/problem';
import { ProblemReport } from './problems/problem-report';
import { type RuleTree, readRuleTrees } from './read-rule-trees';

/** A rule file as it was found. */
export interface RuleFile {
  /** Relative to the rule folder, for messages. */
  readonly path: string;
  readonly content: Uint8Array;
}

/** What was read. Plain data: it survives a structured clone. */
export interface ReadResult {
  /** One for each domain, in the order of the files. They mean something only when there are no errors. */
  readonly configs: readonly DomainConfig[];
  /** Every error of every file. */
  readonly errors: readonly Problem[];
  /** What loads but means less than it seems. */
  readonly warnings: readonly Problem[];
}

/**
 * Reads rule files (document 1, section 2.1) and checks them. It never throws, whatever the bytes. A file of nothing but white
 * space and comments is skipped.
 * @param files in the order in which their rules count, which is that of their paths
 * @param options.mergeDomainConfigs joins the top-level lists of files that describe one domain, which is an error otherwise
 */
export function readRuleFiles(files: readonly RuleFile[], options: { mergeDomainConfigs: boolean }): ReadResult {
  const report = new ProblemReport();
  const configs = readRuleTrees(treesOf(files, report), options, report);
  return { configs, ...report.finish(files.map(({ path }) => path)) };
}

function* treesOf(files: readonly RuleFile[], report: ProblemReport): IterableIterator<RuleTree> {
  for (const { path, content } of files) {
    const source = decodeText(path, content, report);
    const root = source && (parsePlainYaml(source.text) ?? parseYaml(source, report));
    if (source !== undefined && root !== undefined && root !== null) yield { source, root };
  }
}
