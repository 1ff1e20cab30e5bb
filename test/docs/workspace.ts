import { type ExecFileException, execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '../support/processes/free-ports';
import { KeptProcess } from '../support/processes/kept-process';
import { RedisProcess } from '../support/processes/redis/redis-process';
import { until } from '../support/waiting/until';
import { ROOT } from './markdown-files';

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

interface Ports {
  readonly http: number;
  readonly grpc: number;
  readonly debug: number;
  readonly metrics: number;
  readonly xds: number;
}

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A temporary copy of what users have after a build, in which the commands of one page run. They are changed in so far as they use
 * ports and stores of their own, and the build that exists already.
 */
export class Workspace implements AsyncDisposable {
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
      const script = `#!/bin/sh\nexec node "${folder}/dist/${file}" "$@"${workspace.#flagsOf(name)}\n`;
      await writeFile(join(folder, 'bin', name), script, { mode: 0o755 });
    }
    return workspace;
  }

  get isServing(): boolean {
    return this.#kept.length > 0;
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
        (error, stdout, stderr) => resolve({ code: error === null ? 0 : exitCodeOf(error), stdout, stderr }),
      );
    });
  }

  /** Starts commands of which the last one keeps running, and waits until it is ready. */
  async keep(commands: string): Promise<void> {
    const script = replacingTheShell(await this.#adapted(commands));
    const env = Object.entries(this.#env).map(([name, value]) => `${name}=${value}`);
    const program = new KeptProcess([
      'env',
      '-i',
      '-C',
      this.#folder,
      ...env,
      'bash',
      '-euo',
      'pipefail',
      '-c',
      script,
    ]);
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

  #flagsOf(program: string): string {
    const { grpc, debug } = this.#ports;
    if (program === 'weir-client') return ` -dial_string localhost:${grpc} -debug_address localhost:${debug}`;
    return program === 'weir-admin' ? ` -address localhost:${debug}` : '';
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
    while (this.isServing) await this.end();
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

/** 1 for commands that were ended. */
function exitCodeOf({ code }: ExecFileException): number {
  return typeof code === 'number' ? code : 1;
}
