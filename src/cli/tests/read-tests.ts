import { readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { NotationError, readLine } from './notation';
import type { SourceLine } from './play';
import { TestDocument, type TestFile } from './test-document';

const DECISIONS = '.decisions';
const ENDINGS = ['.test.yaml', '.test.yml', DECISIONS];

/**
 * The test files of paths, each a file or a folder, in order.
 *
 * @throws Error with one sentence for the user, for a path that cannot be read or is no test file
 */
export async function readTestFiles(paths: readonly string[]): Promise<readonly TestFile[]> {
  const files: TestFile[] = [];
  for (const path of paths) {
    const found = (await statOf(path)).isDirectory() ? await listFiles(path) : [path];
    for (const each of found) files.push(await readTestFile(each));
  }
  return files;
}

async function statOf(path: string) {
  try {
    return await stat(path);
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

async function readTestFile(path: string): Promise<TestFile> {
  const text = await readFile(path, 'utf8');
  const read = path.endsWith(DECISIONS) ? readDecisions(path, text) : new TestDocument(path, text).read();
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

/** A line of a test file, and what is right in its place. */
export interface Correction {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  readonly right: string;
}

/** Replaces lines of a test file, and nothing else. */
export async function correctTestFile(path: string, corrections: readonly Correction[]): Promise<void> {
  const lines = (await readFile(path, 'utf8')).split('\n');
  for (const { line, text, right } of corrections) lines[line - 1] = lines[line - 1]!.replace(text, () => right);
  await writeFile(path, lines.join('\n'));
}
