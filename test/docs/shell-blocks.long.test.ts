import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../support/processes/free-ports';
import { KeptProcess } from '../support/processes/kept-process';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { until } from '../support/waiting/until';
import { roomInMinute } from '../support/waiting/window-room';
import { type CodeBlock, codeBlocksOf } from './code-blocks';
import { ROOT, markdownFiles } from './markdown-files';

/** How a test treats a block of commands. The comment directly above the block says it: `<!-- test: … -->`. */
type Treatment =
  | { readonly kind: 'run' }
  /** A program that runs until the end of the page; `instead`: of the one that was started before. */
  | { readonly kind: 'keep'; readonly instead: boolean }
  | { readonly kind: 'not run'; readonly reason: string };

interface ShellBlock extends CodeBlock {
  readonly treatment: Treatment;
  /** What the page shows as the output of the block; undefined if it shows none. */
  readonly output: string | undefined;
}

const SHELL = ['sh', 'console', 'bash', 'shell'];
const OUTPUT = ['', 'json', 'text'];
const KEEP = 'test: keeps running';
const NOT_RUN = 'test: not run: ';

/** The pages whose commands are run. */
function pagesWithCommands(): readonly string[] {
  const pages = markdownFiles().filter((file) => /^(?:[A-Z]+\.md$|docs\/|examples\/|deploy\/)/.test(file));
  return pages.filter((page) => page !== 'CONTRIBUTING.md' && shellBlocksOf(page).length > 0);
}

function shellBlocksOf(page: string): readonly ShellBlock[] {
  const blocks = codeBlocksOf(page);
  return blocks.flatMap((block, index) => {
    if (!SHELL.includes(block.language)) return [];
    const next = blocks[index + 1];
    const isOutput = next !== undefined && OUTPUT.includes(next.language) && next.follows;
    return [{ ...block, treatment: treatmentOf(block), output: isOutput ? next.text : undefined }];
  });
}

function treatmentOf({ comment, place }: CodeBlock): Treatment {
  if (!comment.startsWith('test: ')) return { kind: 'run' };
  if (comment === KEEP) return { kind: 'keep', instead: false };
  if (comment === `${KEEP}, instead of the one before`) return { kind: 'keep', instead: true };
  if (comment.startsWith(NOT_RUN)) return { kind: 'not run', reason: comment.slice(NOT_RUN.length) };
  throw new Error(`${place}: a comment that the test of commands does not know: ${comment}`);
}

/** A text whose numbers and durations, which vary from run to run, are replaced by signs. */
function withoutNumbers(text: string): string {
  return text
    .replaceAll(/\b(?:\d+[hms])+\b/g, '#s')
    .replaceAll(/\d+(?:\.\d+)?/g, '#')
    .trim();
}

const TOKEN = 'token-of-the-example';
/** In milliseconds; below that of a test. */
const TIMEOUT = 100_000;
/** A line by which a program says that it is ready. */
const READY = /^Press Ctrl\+C|msg="?serving|"@message":"serving"|^listening on /;
/** The programs of the package, with the flags for the ports of this workspace. */
const PROGRAMS: Readonly<Record<string, string>> = {
  weir: 'main.js',
  'weir-client': 'cli/weir-client.js',
  'weir-admin': 'cli/weir-admin.js',
  'weir-check': 'cli/weir-check.js',
};

type Ports = Readonly<Record<'http' | 'grpc' | 'debug' | 'metrics' | 'xds', number>>;

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A temporary copy of what users have after a build, in which the commands of one page run. They are changed in so far
 * as they use ports and stores of their own, and the build that exists already.
 */
class Workspace implements AsyncDisposable {
  readonly #folder: string;
  readonly #ports: Ports;
  readonly #kept: KeptProcess[] = [];
  #redis: RedisProcess | undefined;

  private constructor(folder: string, ports: Ports) {
    this.#folder = folder;
    this.#ports = ports;
  }

  static async create(): Promise<Workspace> {
    const [http, grpc, debug, metrics, xds] = await freePorts(5);
    const folder = await mkdtemp(join(tmpdir(), 'weir-docs-'));
    const workspace = new Workspace(folder, { http, grpc, debug, metrics, xds });
    for (const name of ['dist', 'node_modules', 'schema', 'scripts', 'proto', 'package.json'])
      await symlink(join(ROOT, name), join(folder, name));
    await cp(join(ROOT, 'examples'), join(folder, 'examples'), { recursive: true });
    await mkdir(join(folder, 'bin'));
    for (const [name, file] of Object.entries(PROGRAMS)) {
      const script = `#!/bin/sh\nexec node "${folder}/dist/${file}" "$@"\n`;
      await writeFile(join(folder, 'bin', name), script, { mode: 0o755 });
    }
    await copyFile(join(ROOT, '.gitignore'), join(folder, '.gitignore'));
    await workspace.run('git init -q && git add -A');
    return workspace;
  }

  /** Runs commands to their end. */
  async run(commands: string): Promise<Run> {
    const script = await this.#adapted(commands);
    return new Promise((resolve) => {
      execFile(
        'bash',
        ['-euo', 'pipefail', '-c', script],
        // Also ends commands that wait for something that does not happen.
        { cwd: this.#folder, env: this.#env, timeout: TIMEOUT, killSignal: 'SIGKILL' },
        // 1 for commands that were ended.
        (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code) || 1, stdout, stderr }),
      );
    });
  }

  /** Starts commands of which the last one keeps running, and waits until it is ready. */
  async keep(commands: string): Promise<void> {
    const script = replacingTheShell(await this.#adapted(commands));
    const env = Object.entries(this.#env).map(([name, value]) => `${name}=${value}`);
    const shell = ['bash', '-euo', 'pipefail', '-c', script];
    const program = new KeptProcess(['env', '-i', '-C', this.#folder, ...env, ...shell]);
    this.#kept.push(program);
    try {
      await until('the program is ready', () => program.lines.some((line) => READY.test(line)));
    } catch (error) {
      throw new Error(`${commands}\n${program.lines.join('\n')}`, { cause: error });
    }
  }

  /** Ends the program that was kept last. */
  async end(): Promise<void> {
    await this.#kept.pop()?.crash();
  }

  get #env(): Readonly<Record<string, string>> {
    const { http, grpc, debug, metrics, xds } = this.#ports;
    return {
      PATH: `${join(this.#folder, 'bin')}:${process.env['PATH']}`,
      PORT: String(http),
      GRPC_PORT: String(grpc),
      DEBUG_PORT: String(debug),
      PULLMETRICS_ADDR: `127.0.0.1:${metrics}`,
      CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${xds}`,
      OPERATOR_TOKEN: TOKEN,
    };
  }

  /** The commands with the ports and the store of the workspace, and without installation and build. */
  async #adapted(commands: string): Promise<string> {
    const { http, grpc, debug, metrics } = this.#ports;
    let adapted = commands
      .replaceAll(/^npm (?:install|ci) && npm run build$/gm, 'true')
      .replaceAll('npm start', 'node scripts/start.cjs')
      .replaceAll('control-plane.mjs examples/config', `$& ${this.#ports.xds}`)
      .replaceAll(/node dist\/cli\/(weir-\w+)\.js/g, '$1');
    const ports = { 8080: http, 8081: grpc, 6070: debug, 9090: metrics };
    for (const [usual, own] of Object.entries(ports))
      adapted = adapted.replaceAll(new RegExp(`(?<=localhost:|127\\.0\\.0\\.1:)${usual}\\b`, 'g'), String(own));
    if (adapted.includes('localhost:6379')) {
      this.#redis ??= await RedisProcess.start();
      adapted = adapted.replaceAll('localhost:6379', this.#redis.address);
    }
    return adapted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    while (this.#kept.length > 0) await this.end();
    await this.#redis?.[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** The commands, the last one of which replaces the shell, so that it is the one that is ended. */
function replacingTheShell(commands: string): string {
  const lines = commands.trimEnd().split('\n');
  const last = lines.findLastIndex((line) => /^\S/.test(line));
  return lines.with(last, lines[last]!.replace(/^(?:\w+=\S* )*/, '$&exec ')).join('\n');
}

/** What a page whose commands need a service has, when it starts none. */
const SERVICE = 'npm start';

describe.each(pagesWithCommands())('the commands of %s', (page) => {
  const blocks = shellBlocksOf(page);
  const kinds = new Set(blocks.map(({ treatment }) => treatment.kind));
  let workspace: Workspace;
  beforeAll(async () => {
    workspace = await Workspace.create();
    if (kinds.has('run') && !kinds.has('keep')) await workspace.keep(SERVICE);
  });
  afterAll(() => workspace[Symbol.asyncDispose]());

  it.each(blocks.map((block) => [block.place, block] as const))('%s do what the page says', async (_place, block) => {
    const { treatment, text, output } = block;
    if (treatment.kind === 'not run') {
      expect(treatment.reason).toMatch(/^[a-z].{6,}/);
      return;
    }
    if (treatment.kind === 'keep') {
      if (treatment.instead) await workspace.end();
      await workspace.keep(text);
      return;
    }
    await roomInMinute();
    const { code, stdout, stderr } = await workspace.run(text);
    expect({ code, stderr, stdout }).toEqual({ code: 0, stderr: expect.any(String) as string, stdout });
    if (output !== undefined) expect(withoutNumbers(stdout)).toBe(withoutNumbers(output));
  });

  it('leave no files in the clone that git would list', async () => {
    expect((await workspace.run('git status --porcelain --untracked-files=all | grep ^?? || true')).stdout).toBe('');
  });
});
