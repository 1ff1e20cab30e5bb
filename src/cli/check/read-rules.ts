import type { Stats } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Problem, folderProblem } from '../../rules/files/problems/problem';
import { NO_PLACES } from '../../rules/rule-config';
import { type ReadResult, readRuleFiles, type RuleFile } from '../../rules/files/read-rule-files';
import { MAX_FILE_BYTES, MAX_TOTAL_BYTES, folderTooLarge } from '../../rules/files/size-limits';
import { type BoundedContents, readBoundedFile } from '../../sources/bounded-file';
import { FolderTooLarge, listRuleFiles, type RuleFiles } from '../../sources/rule-files/list-rule-files';

export interface ReadOptions {
  readonly mergeDomainConfigs: boolean;
  /** The setting RUNTIME_IGNOREDOTFILES. */
  readonly ignoreDotFiles: boolean;
}

interface FilesOptions extends ReadOptions {
  readonly input: (path: string) => Promise<BoundedContents>;
}

/** Rules, and the number of files that they were read from. */
export interface CheckedRules extends ReadResult {
  readonly files: number;
}

/** Reads a rule folder like the service: the same files, in the same order, with the same reader. Or reads one file. */
export async function readRules(path: string, options: ReadOptions): Promise<CheckedRules> {
  let status: Stats;
  try {
    status = await stat(path);
  } catch (error) {
    return unreadablePath(path, `the folder or file cannot be read: ${reasonOf(error)}`);
  }
  if (status.isDirectory()) return readFolder(path, options);
  // A pipe, such as /dev/stdin, has no size, and may wait for its writer.
  const input = status.isFile() ? readRegularFile : readPipe;
  const { read, errors } = await readFiles([path], '', { ...options, input });
  return { ...read, files: 1, errors: [...errors, ...read.errors] };
}

async function readFolder(dir: string, options: ReadOptions): Promise<CheckedRules> {
  let listing: RuleFiles;
  try {
    listing = await listRuleFiles(dir, { ignoreDotFiles: options.ignoreDotFiles });
  } catch (error) {
    if (error instanceof FolderTooLarge) return unusable(folderProblem(dir, folderTooLarge(error.excess)));
    return unreadablePath(dir, `the folder cannot be listed: ${reasonOf(error)}`);
  }
  const { read, errors } = await readFiles(
    listing.files.map((file) => file.path),
    dir,
    { ...options, input: readRegularFile },
  );
  return {
    files: listing.files.length,
    configs: read.configs,
    placeOf: read.placeOf,
    errors: [...errors, ...read.errors],
    warnings: [...folderWarnings(dir, listing), ...read.warnings],
  };
}

function unreadablePath(path: string, message: string): CheckedRules {
  const advice = 'Give a rule folder or a rule file that exists and is readable.';
  return unusable(folderProblem(path, { code: 'unreadable-folder', message, advice }));
}

function unusable(problem: Problem): CheckedRules {
  return { files: 0, configs: [], placeOf: NO_PLACES, errors: [problem], warnings: [] };
}

/** Reads and checks files; `errors` are those of the files that cannot be read. */
async function readFiles(paths: readonly string[], dir: string, { mergeDomainConfigs, input }: FilesOptions) {
  const files: RuleFile[] = [];
  const errors: Problem[] = [];
  let total = 0;
  for (const path of paths) {
    try {
      const { content = new Uint8Array(), tooLarge } = await input(join(dir, path));
      total += content.length;
      if (total > MAX_TOTAL_BYTES) {
        errors.push(folderProblem(dir, folderTooLarge('bytes')));
        break;
      }
      files.push({ path, content, tooLarge });
    } catch (error) {
      const message = `cannot read the file: ${reasonOf(error)}`;
      const advice = 'Correct its permissions or the target of its link, or delete it.';
      errors.push(folderProblem(path, { code: 'unreadable-file', message, advice }));
    }
  }
  return { read: readRuleFiles(files, { mergeDomainConfigs }), errors };
}

function readRegularFile(path: string): Promise<BoundedContents> {
  return readBoundedFile(path, MAX_FILE_BYTES);
}

async function readPipe(path: string): Promise<BoundedContents> {
  return { content: await readFile(path) };
}

function folderWarnings(dir: string, { files, others, linkedFolders }: RuleFiles): Problem[] {
  const warnings: Problem[] = [];
  if (files.length === 0) {
    const message = 'the folder has no rule files: nothing is limited';
    const advice = 'Rule files are named *.yaml or *.yml.';
    warnings.push(folderProblem(dir, { code: 'no-rule-files', message, advice }));
  }
  if (others.length > 0) {
    const message = `ignored files: ${others.join(', ')}`;
    const advice = 'Rule files are named *.yaml or *.yml; move other files elsewhere.';
    warnings.push(folderProblem(dir, { code: 'ignored-files', message, advice }));
  }
  if (linkedFolders.length > 0) {
    const message = `links to folders are not followed: ${linkedFolders.join(', ')}`;
    warnings.push(folderProblem(dir, { code: 'linked-folders', message, advice: 'Link the files themselves.' }));
  }
  return warnings;
}

/** `ENOENT: no such file or directory`, without the system call and the path that follow in the message. */
function reasonOf(error: unknown): string {
  return String(error)
    .replace(/^Error: /, '')
    .replace(/, \w+( '.*)?$/, '');
}
