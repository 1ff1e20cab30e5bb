import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { type Problem, type ProblemDetails, folderProblem } from '../../rules/files/problems/problem';
import { type ReadResult, readRuleFiles, type RuleFile } from '../../rules/files/read-rule-files';
import { MAX_FILE_BYTES, MAX_TOTAL_BYTES, folderTooLarge } from '../../rules/files/size-limits';
import { type BoundedContents, readBoundedFile, rejectDevice } from '../../sources/bounded-file';
import { FolderTooLarge, listRuleFiles, type RuleFiles } from '../../sources/rule-files/list-rule-files';

export interface ReadOptions {
  readonly mergeDomainConfigs: boolean;
  /** The setting RUNTIME_IGNOREDOTFILES. */
  readonly ignoreDotFiles: boolean;
}

/** Rules, and the paths of the files that they were read from. */
export interface CheckedRules extends ReadResult {
  readonly files: readonly string[];
}

/** What is read as standard input. */
const STANDARD_INPUT = '-';

/**
 * Reads rule folders like the service: the same files, in the same order, with the same reader. Also reads single
 * files, pipes and, as `-`, standard input. Problems have the paths as they were given, with the names in folders after
 * them.
 */
export async function readRules(paths: string | readonly string[], options: ReadOptions): Promise<CheckedRules> {
  const [files, names, errors, warnings]: [RuleFile[], string[], Problem[], Problem[]] = [[], [], [], []];
  let bytes = 0;
  async function readFile(name: string, input: () => Promise<BoundedContents>): Promise<void> {
    names.push(name);
    try {
      const { content = new Uint8Array(), tooLarge } = await input();
      bytes += content.length;
      if (bytes > MAX_TOTAL_BYTES) errors.push(folderProblem(dirname(name), folderTooLarge('bytes')));
      else files.push({ path: name, content, tooLarge });
    } catch (error) {
      const message = `cannot read the file: ${reasonOf(error)}`;
      errors.push(folderProblem(name, { code: 'unreadable-file', message }));
    }
  }
  async function readPath(path: string): Promise<void> {
    if (path === STANDARD_INPUT) return readFile(path, () => readPipe(process.stdin));
    const status = await stat(path);
    if (!status.isDirectory()) {
      rejectDevice(path, status);
      const isFile = status.isFile();
      return readFile(path, () => (isFile ? readBoundedFile(path, MAX_FILE_BYTES) : readPipe(createReadStream(path))));
    }
    const listing = await listRuleFiles(path, options.ignoreDotFiles);
    warnings.push(...folderWarnings(path, listing));
    for (const { path: name } of listing.files) {
      const file = join(path, name);
      if (bytes <= MAX_TOTAL_BYTES) await readFile(file, () => readBoundedFile(file, MAX_FILE_BYTES));
    }
  }
  for (const path of [paths].flat()) {
    await readPath(path).catch((error: unknown) => {
      const problem = error instanceof FolderTooLarge ? folderTooLarge(error.excess) : unreadable(error);
      errors.push(folderProblem(path, problem));
    });
  }
  const read = readRuleFiles(files, options);
  return {
    ...{ configs: read.configs, files: names },
    ...{ errors: [...errors, ...read.errors], warnings: [...warnings, ...read.warnings] },
  };
}

function unreadable(error: unknown): ProblemDetails {
  const message = `the folder or file cannot be read: ${reasonOf(error)}`;
  return { code: 'unreadable-folder', message };
}

async function readPipe(stream: Readable): Promise<BoundedContents> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_FILE_BYTES) return { tooLarge: bytes };
    chunks.push(chunk);
  }
  return { content: Buffer.concat(chunks) };
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
  const [reason = ''] = String(error)
    .replace(/^Error: /, '')
    .split(', ', 1);
  return reason;
}
