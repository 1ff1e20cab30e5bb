import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Problem, folderProblem } from '../../rules/files/problems/problem';
import { type ReadResult, readRuleFiles, type RuleFile } from '../../rules/files/read-rule-files';
import { listRuleFiles, type RuleFiles } from '../../sources/rule-files/reading/list-rule-files';

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
  let isFolder: boolean;
  try {
    isFolder = (await stat(path)).isDirectory();
  } catch (error) {
    return unreadablePath(path, `the folder or file cannot be read: ${reasonOf(error)}`);
  }
  if (isFolder) return readFolder(path, options);
  const { read, errors } = await readFiles([path], '', options);
  return { ...read, files: 1, errors: [...errors, ...read.errors] };
}

async function readFolder(dir: string, options: ReadOptions): Promise<CheckedRules> {
  let listing: RuleFiles;
  try {
    listing = await listRuleFiles(dir, { ignoreDotFiles: options.ignoreDotFiles });
  } catch (error) {
    return unreadablePath(dir, `the folder cannot be listed: ${reasonOf(error)}`);
  }
  const { read, errors } = await readFiles(listing.files, dir, options);
  return {
    files: listing.files.length,
    configs: read.configs,
    errors: [...errors, ...read.errors],
    warnings: [...folderWarnings(dir, listing), ...read.warnings],
  };
}

function unreadablePath(path: string, message: string): CheckedRules {
  const advice = 'Give a rule folder or a rule file that exists and is readable.';
  const problem = folderProblem(path, { code: 'unreadable-folder', message, advice });
  return { files: 0, configs: [], errors: [problem], warnings: [] };
}

/** Reads and checks files; `errors` are those of the files that cannot be read. */
async function readFiles(paths: readonly string[], dir: string, { mergeDomainConfigs }: ReadOptions) {
  const files: RuleFile[] = [];
  const errors: Problem[] = [];
  for (const path of paths) {
    try {
      files.push({ path, content: await readFile(join(dir, path)) });
    } catch (error) {
      const message = `cannot read the file: ${reasonOf(error)}`;
      const advice = 'Correct its permissions or the target of its link, or delete it.';
      errors.push(folderProblem(path, { code: 'unreadable-file', message, advice }));
    }
  }
  return { read: readRuleFiles(files, { mergeDomainConfigs }), errors };
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
