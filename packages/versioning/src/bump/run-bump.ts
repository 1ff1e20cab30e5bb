import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Bump, BumpError, planBump, writeNewFile } from './plan';

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

Flags may have two dashes.
Exit codes: 0 every controller was created, 1 at least one was not (its line says why), 2 invalid command line.
`;

/**
 * The program weir-bump: creates, for each controller of the highest version of an API, a controller of the next version that
 * extends it.
 *
 * @param argv the command line without interpreter and program
 */
export function runBump(argv: readonly string[]): BumpRun {
  let flags;
  try {
    flags = parseFlags(argv);
  } catch (error) {
    return { exitCode: 2, stdout: '', stderr: `weir-bump: ${(error as Error).message}\n${USAGE}` };
  }
  if (flags.help === true) return { exitCode: 0, stdout: USAGE, stderr: '' };
  if (flags.version === true) return { exitCode: 0, stdout: `weir-bump ${ownVersion()}\n`, stderr: '' };
  try {
    const bump = planBump(join(flags.controllers, flags.namespace));
    return flags['dry-run'] === true ? preview(bump) : create(bump);
  } catch (error) {
    if (!(error instanceof BumpError)) throw error;
    return { exitCode: 1, stdout: '', stderr: `weir-bump: ${error.message}\n` };
  }
}

function parseFlags(argv: readonly string[]) {
  const { values } = parseArgs({
    // One dash is as good as two.
    args: argv.map((argument) => argument.replace(/^-(?=\w\w)/, '--')),
    options: {
      controllers: { type: 'string', default: 'controllers' },
      namespace: { type: 'string', default: 'api' },
      'dry-run': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean' },
    },
  });
  return values;
}

function ownVersion(): string {
  const contents: unknown = JSON.parse(readFileSync(join(__dirname, '../../package.json'), 'utf8'));
  return String(Object(contents).version);
}

function preview({ files, ...versions }: Bump): BumpRun {
  const lines = files.map(({ path }) => `would create ${path}\n`);
  return { exitCode: 0, stdout: lines.join('') + nextStep(versions), stderr: '' };
}

function create({ files, ...versions }: Bump): BumpRun {
  let stdout = '';
  let stderr = '';
  let exitCode: BumpRun['exitCode'] = 0;
  for (const file of files) {
    try {
      const isNew = writeNewFile(file);
      if (!isNew) exitCode = 1;
      stdout += `${isNew ? 'created' : 'exists '} ${file.path}\n`;
    } catch (error) {
      if (!(error instanceof BumpError)) throw error;
      exitCode = 1;
      stderr += `weir-bump: ${error.message}\n`;
    }
  }
  return { exitCode, stdout: stdout === '' ? '' : stdout + nextStep(versions), stderr };
}

function nextStep({ from, to }: Pick<Bump, 'from' | 'to'>): string {
  return `Each extends version ${from}. Declare the routes with api.version(${to}, () => api.inherit({ from: … })).\n`;
}
