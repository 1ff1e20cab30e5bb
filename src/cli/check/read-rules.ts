import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Problem, type ProblemDetails, folderProblem } from '../../rules/files/problems/problem';
import { type ReadResult, readRuleFiles, type RuleFile } from '../../rules/files/read-rule-files';
import { MAX_FILE_BYTES, MAX_TOTAL_BYTES, folderTooLarge } from '../../rules/files/size-limits';
import { type BoundedContents, readBoundedFile } from '../../sources/bounded-file';
import { FolderTooLarge, listRuleFiles, type RuleFiles } from '../../sources/rule-files/list-rule-files';

export interface ReadOptions {
  readonly mergeDomainConfigs: boolean;
  /** The setting RUNTIME_IGNOREDOTFILES. */
  readonly ignoreDotFiles: boolean;
}

/** Rules, and the number of files that they were read from. */
export interface CheckedRules extends ReadResult {
  readonly files: number;
}

/** Reads a rule folder like the service: the same files, in the same order, with the same reader. Or reads one file. */
export async function readRules(path: string, options: ReadOptions): Promise<CheckedRules> {
  let [dir, names, input]: [string, readonly string[], typeof readPipe] = ['', [path], readRegularFile];
  let warnings: readonly Problem[] = [];
  try {
    const status = await stat(path);
    if (status.isDirectory()) {
      const listing = await listRuleFiles(path, options.ignoreDotFiles);
      [dir, names] = [path, listing.files.map((file) => file.path)];
      warnings = folderWarnings(path, listing);
    } else if (!status.isFile()) input = readPipe;
  } catch (error) {
    const problem = error instanceof FolderTooLarge ? folderTooLarge(error.excess) : unreadable(error);
    return { files: 0, configs: [], errors: [folderProblem(path, problem)], warnings: [] };
  }
  const files: RuleFile[] = [];
  const errors: Problem[] = [];
  let total = 0;
  for (const name of names) {
    try {
      const { content = new Uint8Array(), tooLarge } = await input(join(dir, name));
      total += content.length;
      if (total > MAX_TOTAL_BYTES) {
        errors.push(folderProblem(dir, folderTooLarge('bytes')));
        break;
      }
      files.push({ path: name, content, tooLarge });
    } catch (error) {
      const message = `cannot read the file: ${reasonOf(error)}`;
      errors.push(folderProblem(name, { code: 'unreadable-file', message }));
    }
  }
  const read = readRuleFiles(files, options);
  return {
    ...read,
    files: names.length,
    errors: [...errors, ...read.errors],
    warnings: [...warnings, ...read.warnings],
  };
}

function unreadable(error: unknown): ProblemDetails {
  const message = `the folder or file cannot be read: ${reasonOf(error)}`;
  return { code: 'unreadable-folder', message };
}

function readRegularFile(path: string): Promise<BoundedContents> {
  return readBoundedFile(path, MAX_FILE_BYTES);
}

async function readPipe(path: string): Promise<BoundedContents> {
  return { content: await readFile(path) };
}

function folderWarnings(dir: string, { files, others, linkedFolders }: RuleFiles): readonly Problem[] {
  const warnings = [
    [files.length === 0, 'no-rule-files', 'the folder has no rule files: nothing is limited'],
    [others.length > 0, 'ignored-files', `ignored files: ${others.join(', ')}`],
    [linkedFolders.length > 0, 'linked-folders', `links to folders are not followed: ${linkedFolders.join(', ')}`],
  ] as const;
  return warnings.flatMap(([isSo, code, message]) => (isSo ? [folderProblem(dir, { code, message })] : []));
}

/** `ENOENT: no such file or directory`, without the system call and the path that follow in the message. */
function reasonOf(error: unknown): string {
  return String(error)
    .replace(/^Error: /, '')
    .replace(/, \w+( '.*)?$/, '');
}
