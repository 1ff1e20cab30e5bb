import { readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { readBoundedFile } from '../../sources/bounded-file';
import { messageOf } from '../../text/thrown';
import { NotationError, readLine } from './notation';
import type { Difference, SourceLine } from './play';
import { type TestFile, readTestDocument } from './test-document';

const DECISIONS = '.decisions';
const ENDINGS = ['.test.yaml', '.test.yml', DECISIONS];

/** In bytes, of a test file and of all of them. */
const [MAX_BYTES, MAX_TOTAL_BYTES] = [8 * 1024 * 1024, 64 * 1024 * 1024];

/**
 * The test files of paths, each a file or a folder, in order.
 *
 * @throws Error with one sentence for the user, for a path that cannot be read or is no test file
 */
export async function readTestFiles(paths: readonly string[]): Promise<readonly TestFile[]> {
  const files: TestFile[] = [];
  let bytes = 0;
  for (const path of paths) {
    for (const each of await filesAt(path)) {
      const content = await contentOf(each);
      bytes += content.length;
      if (bytes > MAX_TOTAL_BYTES) throw new Error(`the test files have more than ${MAX_TOTAL_BYTES} bytes in total`);
      files.push(readTestFile(each, content));
    }
  }
  return files;
}

async function filesAt(path: string): Promise<readonly string[]> {
  try {
    return (await stat(path)).isDirectory() ? await listFiles(path) : [path];
  } catch {
    throw new Error(`the test file or folder ${path} cannot be read`);
  }
}

async function listFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true });
  return names
    .filter((name) => ENDINGS.some((ending) => name.endsWith(ending)))
    .toSorted()
    .map((name) => join(folder, name));
}

async function contentOf(path: string): Promise<Uint8Array> {
  const { content, tooLarge } = await readBoundedFile(path, MAX_BYTES).catch((cause: unknown) => {
    throw new Error(`the test file ${path} cannot be read: ${messageOf(cause)}`, { cause });
  });
  if (content !== undefined) return content;
  throw new Error(`the test file ${path} has ${tooLarge} bytes, more than the limit of ${MAX_BYTES}`);
}

function readTestFile(path: string, content: Uint8Array): TestFile {
  const read = path.endsWith(DECISIONS)
    ? readDecisions(path, new TextDecoder().decode(content))
    : readTestDocument(path, content);
  return { ...read, rules: read.rules.map((each) => (isAbsolute(each) ? each : join(dirname(path), each))) };
}

/**
 * A file of lines alone. Those before its first line `test` apply to all of its tests; without one, it is a single
 * test.
 */
export function readDecisions(path: string, text: string): TestFile {
  const rules: string[] = [];
  const settings: Record<string, string> = {};
  const tests: { name: string; domain: string; lines: SourceLine[] }[] = [];
  let domain = '';
  for (const [index, each] of text.split('\n').entries()) {
    const line = { number: index + 1, text: each.trim() };
    const read = readIfValid(line.text);
    if (read?.kind === 'rules') rules.push(read.value);
    else if (read?.kind === 'setting') settings[read.name] = read.value;
    else if (read?.kind === 'test') tests.push({ name: read.value, domain, lines: [] });
    else if (tests.length > 0) tests.at(-1)!.lines.push(line);
    else if (read?.kind === 'domain') domain = read.value;
    else if (read?.kind !== 'none') tests.push({ name: path, domain, lines: [line] });
  }
  return { path, rules, settings, tests };
}

/** Invalid lines are played, and reported then. */
function readIfValid(text: string): ReturnType<typeof readLine> | undefined {
  try {
    return readLine(text);
  } catch (error) {
    if (error instanceof NotationError) return undefined;
    throw error;
  }
}

/** Replaces the lines of a test file that would be right with another expectation, and nothing else. */
export async function correctTestFile(path: string, differences: readonly Difference[]): Promise<void> {
  const lines = Buffer.from(await contentOf(path))
    .toString()
    .split('\n');
  for (const { number, text, right } of differences) {
    const present = lines[number - 1];
    if (present !== undefined && right !== undefined) lines[number - 1] = present.replace(text, () => right);
  }
  await writeFile(path, lines.join('\n'));
}
