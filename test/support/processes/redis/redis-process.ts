import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { Daemon } from '../daemon';
import { freePorts } from '../free-ports';

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
  readonly configuration?: () => readonly string[];
}

/** A real redis-server on a free port of 127.0.0.1 and a Unix socket. */
export class RedisProcess extends Daemon {
  readonly #options: RedisProcessOptions;
  #hasRun = false;
  /** Whether the server runs: the test has neither crashed nor stopped it. */
  isUp = false;
  #control: Redis | undefined;

  private constructor(
    readonly port: number,
    options: RedisProcessOptions,
  ) {
    super();
    this.#options = options;
  }

  static async start(options: RedisProcessOptions = {}): Promise<RedisProcess> {
    for (let attempt = 1; ; attempt += 1) {
      const [port] = await freePorts(1);
      try {
        return await new RedisProcess(port, options).started();
      } catch (error) {
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

  /** Waits for a line of its log that matches `isReady`. */
  async run({ isReady = /Ready to accept connections|Sentinel ID is|Running mode=sentinel/ } = {}): Promise<void> {
    const { directives = [], mode = [], isTls = false, configuration = () => [] } = this.#options;
    const file = join(this.folder, 'redis.conf');
    const lines = configuration();
    if (lines.length > 0 && !this.#hasRun) await writeFile(file, `${lines.join('\n')}\n`);
    this.#hasRun = true;
    this.launch(
      'redis-server',
      ...(lines.length > 0 ? [file] : []),
      ...(isTls ? ['--port', '0', '--tls-port', String(this.port)] : ['--port', String(this.port)]),
      ...['--bind', '127.0.0.1', '--dir', this.folder],
      ...(mode.includes('--sentinel') ? [] : ['--unixsocket', this.socket, '--save', '', '--appendonly', 'no']),
      ...directives,
      ...mode,
    );
    await this.until('redis-server listens', () => {
      if (this.lines.some((line) => /Failed listening|FATAL|Fatal|ERROR|Bad directive/.test(line))) {
        throw new Error('redis-server does not start');
      }
      return this.pid > 0 && this.lines.some((line) => isReady.test(line));
    });
    this.isUp = true;
  }

  override signal(name: NodeJS.Signals): void {
    this.isUp = name === 'SIGCONT';
    super.signal(name);
  }

  /** Kills the server; {@link run} starts it again, without data. */
  override async crash(): Promise<void> {
    this.isUp = false;
    await super.crash();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#control?.disconnect();
    await super[Symbol.asyncDispose]();
  }
}
