import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Problem, folderProblem } from '../../rules/files/problems/problem';
import { type ReadResult, readRuleFiles, type RuleFile } from '../../rules/files/read-rule-files';
import { listRuleFiles, type RuleFiles } from '../../sources/rule-files/reading/list-rule-files';

export interface FolderOptions {
  readonly mergeDomainConfigs: boolean;
  /** The setting RUNTIME_IGNOREDOTFILES. */
  readonly ignoreDotFiles: boolean;
}

/** The rules of a folder, and the number of files that they were read from. */
export interface FolderResult extends ReadResult {
  readonly files: number;
}

/** Reads a rule folder like the service: the same files, in the same order, with the same reader. */
export async function readRuleFolder(dir: string, options: FolderOptions): Promise<FolderResult> {
  let listing: RuleFiles;
  try {
    listing = await listRuleFiles(dir, { ignoreDotFiles: options.ignoreDotFiles });
  } catch (error) {
    const message = `cannot list the folder: ${reasonOf(error)}`;
    const problem = folderProblem(dir, {
      code: 'unreadable-folder',
      message,
      advice: 'Set -config_dir to a folder that exists and is readable.',
    });
    return { files: 0, configs: [], errors: [problem], warnings: [] };
  }
  const files: RuleFile[] = [];
  const errors: Problem[] = [];
  for (const path of listing.files) {
    try {
      files.push({ path, content: await readFile(join(dir, path)) });
    } catch (error) {
      const message = `cannot read the file: ${reasonOf(error)}`;
      const advice = 'Correct its permissions or the target of its link, or delete it.';
      errors.push(folderProblem(path, { code: 'unreadable-file', message, advice }));
    }
  }
  const read = readRuleFiles(files, { mergeDomainConfigs: options.mergeDomainConfigs });
  return {
    files: listing.files.length,
    configs: read.configs,
    errors: [...errors, ...read.errors],
    warnings: [...folderWarnings(dir, listing), ...read.warnings],
  };
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
