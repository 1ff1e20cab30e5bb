import { join } from 'node:path';
import { type Bump, BumpError, planBump, writeNewFile } from '../../http/versioning/bump/bump-controllers';
import { FlagError, type FlagSpec, type FlagValues, type Information, flagHelp, parseFlags } from '../flags';
import { VERSION } from '../version';

const BUMP_FLAGS = {
  controllers: {
    kind: 'string',
    default: 'controllers',
    placeholder: 'DIR',
    help: 'the folder of the controllers, as in the option controllers of api()',
  },
  namespace: { kind: 'string', default: 'api', placeholder: 'NAME', help: 'the namespace of the api block' },
  'dry-run': { kind: 'boolean', help: 'print what would be created' },
} as const satisfies FlagSpec;

/** The result of a run of weir-bump. */
export interface BumpRun {
  /** 0: every controller was created. 1: at least one was not. 2: invalid command line. */
  readonly exitCode: 0 | 1 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The program weir-bump: creates, for each controller of the highest version of an API, a controller of the next version that
 * extends it.
 *
 * @param argv the command line without interpreter and program
 */
export async function runBump(argv: readonly string[]): Promise<BumpRun> {
  try {
    const request = parseRequest(argv);
    if (request === 'help') return { exitCode: 0, stdout: usage(), stderr: '' };
    if (request === 'version') return { exitCode: 0, stdout: `weir-bump ${VERSION}\n`, stderr: '' };
    const bump = await planBump(join(request.controllers, request.namespace));
    return request['dry-run'] ? preview(bump) : create(bump);
  } catch (error) {
    if (error instanceof FlagError)
      return { exitCode: 2, stdout: '', stderr: `weir-bump: ${error.message}\n${usage()}` };
    if (error instanceof BumpError) return { exitCode: 1, stdout: '', stderr: `weir-bump: ${error.message}\n` };
    throw error;
  }
}

function parseRequest(argv: readonly string[]): FlagValues<typeof BUMP_FLAGS> | Information {
  const { information, values, rest } = parseFlags(argv, BUMP_FLAGS);
  if (information !== undefined) return information;
  if (rest[0] !== undefined) throw new FlagError(`unexpected argument "${rest[0]}"`);
  return values;
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

function usage(): string {
  return `weir-bump creates the controllers of the next API version: for each controller of the highest version, a
class that extends it and has an empty body. It never overwrites a file.

Usage: weir-bump [flags]

${flagHelp(BUMP_FLAGS)}
Exit codes: 0 every controller was created, 1 at least one was not (its line says why), 2 invalid command line.
`;
}
