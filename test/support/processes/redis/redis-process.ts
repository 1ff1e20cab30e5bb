import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis, type RedisOptions } from 'ioredis';
import { freePorts } from '../free-ports';
import { SUPERVISOR } from '../supervisor';
import { until } from '../../waiting/until';

export interface RedisProcessOptions {
  /** Directives as on the command line, for example `['--requirepass', 'secret']`. */
  readonly directives?: readonly string[];
  /** Arguments after all others on the command line. */
  readonly mode?: readonly string[];
  /** Whether the server accepts only TLS. */
  readonly isTls?: boolean;
  /** Options of the test's own client, in addition to the port. */
  readonly control?: RedisOptions;
  /** The lines of the configuration file. */
  readonly configuration?: (own: { readonly port: number; readonly folder: string }) => readonly string[];
}

/** A real redis-server on a free port of 127.0.0.1 and a Unix socket, in a folder of its own. */
export class RedisProcess implements AsyncDisposable {
  readonly #options: RedisProcessOptions;
  #child: ChildProcess | undefined;
  #pid = 0;
  #isUp = false;
  #control: Redis | undefined;

  private constructor(
    readonly port: number,
    readonly folder: string,
    options: RedisProcessOptions,
  ) {
    this.#options = options;
  }

  static async start(options: RedisProcessOptions = {}): Promise<RedisProcess> {
    for (let attempt = 1; ; attempt += 1) {
      const [port] = await freePorts(1);
      const server = new RedisProcess(port, await mkdtemp(join(tmpdir(), 'weir-redis-')), options);
      try {
        await server.run();
        return server;
      } catch (error) {
        await server[Symbol.asyncDispose]();
        // Another process may have taken the port.
        if (attempt === 3) throw error;
      }
    }
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get socket(): string {
    return join(this.folder, 'redis.sock');
  }

  get pid(): number {
    return this.#pid;
  }

  /** The test's own client, independent of the one under test. */
  get control(): Redis {
    this.#control ??= new Redis({
      port: this.port,
      host: '127.0.0.1',
      retryStrategy: () => 20,
      disableClientInfo: true,
      maxRetriesPerRequest: null,
      ...this.#options.control,
    }).on('error', () => undefined);
    return this.#control;
  }

  /** Starts the server, also after a crash, and waits for a line of its log that matches `isReady`. */
  async run({ isReady = /Ready to accept connections|Sentinel ID is|Running mode=sentinel/ } = {}): Promise<void> {
    const { directives = [], mode = [], isTls = false, configuration = () => [] } = this.#options;
    const file = join(this.folder, 'redis.conf');
    const lines = configuration({ port: this.port, folder: this.folder });
    if (lines.length > 0 && this.#child === undefined) await writeFile(file, `${lines.join('\n')}\n`);
    const command = [
      'redis-server',
      ...(lines.length > 0 ? [file] : []),
      ...(isTls ? ['--port', '0', '--tls-port', String(this.port)] : ['--port', String(this.port)]),
      ...['--bind', '127.0.0.1', '--dir', this.folder],
      ...(mode.includes('--sentinel') ? [] : ['--unixsocket', this.socket, '--save', '', '--appendonly', 'no']),
      ...directives,
      ...mode,
    ];
    const child = spawn('sh', ['-c', SUPERVISOR, 'sh', ...command], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    const output: string[] = [];
    createInterface(child.stdout).on('line', (line) => {
      output.push(line);
      const pid = /^pid (\d+)$/.exec(line);
      if (pid !== null) this.#pid = Number(pid[1]);
    });
    await until('redis-server listens', () => {
      if (output.some((line) => isReady.test(line))) return true;
      if (output.some((line) => /Failed listening|FATAL|Fatal|ERROR|Bad directive/.test(line))) {
        throw new Error(output.join('\n'));
      }
      return false;
    });
    this.#isUp = true;
  }

  /** Whether the server runs: the test has neither crashed nor stopped it. */
  get isUp(): boolean {
    return this.#isUp;
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#isUp = name === 'SIGCONT';
    process.kill(this.#pid, name);
  }

  /** Kills the server and waits for its end; {@link run} starts it again, without data. */
  async crash(): Promise<void> {
    const child = this.#child;
    this.#isUp = false;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.stdin?.end();
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#control?.disconnect();
    await this.crash();
    await rm(this.folder, { recursive: true, force: true });
  }
}
