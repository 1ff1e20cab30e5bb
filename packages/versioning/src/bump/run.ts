import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { planBump } from './plan';

/** The result of a run of weir-bump. */
export interface BumpRun {
  /** 0: every controller was created. 1: at least one was not. 2: invalid command line. */
  readonly exitCode: 0 | 1 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

const USAGE = `weir-bump creates the controllers of the next API version: for each controller of the highest version, a
class that extends it and has an empty body. It never overwrites a file.

Usage: weir-bump [flags]

  -controllers DIR  the folder of the controllers, as in the option controllers of api() (default controllers)
  -namespace NAME   the namespace of the api block (default api)
  -dry-run          print what would be created
  -h, -help         print this help
  -version          print the version

Exit codes: 0 every controller was created, 1 at least one was not (its line says why), 2 invalid command line.
`;

const FLAGS = {
  controllers: { type: 'string', default: 'controllers' },
  namespace: { type: 'string', default: 'api' },
  'dry-run': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', default: false },
} as const;

/**
 * The program weir-bump: creates, for each controller of the highest version of an API, a controller of the next
 * version that extends it.
 *
 * @param argv the command line without interpreter and program
 */
export function runBump(argv: readonly string[]): BumpRun {
  // One dash is as good as two.
  const args = argv.map((argument) => argument.replace(/^-(?=\w\w)/, '--'));
  let flags;
  try {
    flags = parseArgs({ args, options: FLAGS }).values;
  } catch (error) {
    return { exitCode: 2, stdout: '', stderr: `${failure(error)}Run weir-bump -h for its flags.\n` };
  }
  if (flags.help) return { exitCode: 0, stdout: USAGE, stderr: '' };
  if (flags.version) return { exitCode: 0, stdout: `weir-bump ${ownVersion()}\n`, stderr: '' };
  try {
    return bump(join(flags.controllers, flags.namespace), flags['dry-run']);
  } catch (error) {
    return { exitCode: 1, stdout: '', stderr: failure(error) };
  }
}

function bump(folder: string, isDry: boolean): BumpRun {
  const { version, files } = planBump(folder);
  let stdout = '';
  let stderr = '';
  let exitCode: BumpRun['exitCode'] = 0;
  for (const { path, text } of files) {
    try {
      const outcome = isDry ? 'would create' : create(path, text);
      if (outcome === 'exists ') exitCode = 1;
      stdout += `${outcome} ${path}\n`;
    } catch (error) {
      exitCode = 1;
      stderr += failure(error, `cannot write ${path}: `);
    }
  }
  const next = `Declare the routes with api.version(${version + 1}, () => api.inherit({ from: … })).`;
  return { exitCode, stdout: stdout === '' ? '' : `${stdout}Each extends version ${version}. ${next}\n`, stderr };
}

/** Creates a file; an existing one is never overwritten. */
function create(path: string, text: string): 'created' | 'exists ' {
  mkdirSync(dirname(path), { recursive: true });
  try {
    writeFileSync(path, text, { flag: 'wx' });
    return 'created';
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return 'exists ';
    throw error;
  }
}

function failure(error: unknown, context = ''): string {
  return `weir-bump: ${context}${(error as Error).message}\n`;
}

function ownVersion(): string {
  const contents: unknown = JSON.parse(readFileSync(join(__dirname, '../../package.json'), 'utf8'));
  return String(Object(contents).version);
}
