import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Interface, createInterface } from 'node:readline';
import { freePorts } from './free-ports';
import { underPermissions } from './permissions';
import { NODE_MAJOR } from './process-memory';

const DIST = join(__dirname, '../../../dist');
const END_WITH_PARENT = join(__dirname, 'end-with-parent.cjs');
const TIMEOUT = 60_000;
/** The young generation of Node 24 is much larger by itself. With the option, older versions reject compiled code. */
const OPTIONS = NODE_MAJOR < 24 ? [] : ['--max-semi-space-size=8'];
const FIRST = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child'] as const;

function withOpenFiles(limit: number, command: readonly string[]): readonly [string, ...string[]] {
  return ['sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh', ...command];
}

export interface WeirOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Whether to wait until it serves; default: true. */
  readonly awaitServing?: boolean;
  /** Whether file permissions apply to it even when the tests run as root; default: false. */
  readonly underPermissions?: boolean;
  /**
   * Whether it is the first process (PID 1) of a namespace, as in a container; its parent is then the process of
   * {@link WeirProcess.pid}.
   */
  readonly isFirst?: boolean;
  /** File descriptors for its outputs, which are then not part of {@link WeirProcess.output}. */
  readonly outputs?: { readonly stdout?: number; readonly stderr?: number };
  /** The limit of open files (`ulimit -n`); default: that of the tests. */
  readonly openFiles?: number | undefined;
  /** The folder of the build; default: that of this checkout. */
  readonly dist?: string;
  /** The program that runs the service; default: that of the build. */
  readonly program?: string;
  /** Node and its options; default: that of this process, Node 24 with the option of the image. */
  readonly node?: readonly [string, ...string[]];
}

/** The built service as a separate process on free ports, used from outside only. */
export class WeirProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  readonly #readers: Interface[] = [];
  #isOver = false;
  readonly exited: Promise<number | null>;

  private constructor(
    child: ChildProcess,
    readonly ports: { readonly http: number; readonly grpc: number; readonly debug: number },
    folder: string,
  ) {
    this.#child = child;
    for (const stream of [child.stderr, child.stdout]) {
      if (stream !== null) this.#readers.push(createInterface(stream).on('line', (line) => this.#lines.push(line)));
    }
    // Not before everything it has written has been read.
    this.exited = once(child, 'close').then(([code]) => {
      this.#isOver = true;
      rmSync(folder, { recursive: true, force: true });
      return code as number | null;
    });
  }

  /** Starts it with the given settings and nothing else of the environment, so that tests do not depend on it. */
  static async start(options: WeirOptions = {}): Promise<WeirProcess> {
    for (let attempt = 1; ; attempt += 1) {
      const weir = await WeirProcess.#spawn(options);
      if (options.awaitServing === false) return weir;
      try {
        await weir.#serving(options);
        return weir;
      } catch (error) {
        await weir[Symbol.asyncDispose]();
        // Another process has taken a port in the meantime.
        if (attempt === 3 || !weir.output.includes('EADDRINUSE')) throw error;
      }
    }
  }

  static async #spawn({
    env,
    outputs = {},
    openFiles,
    dist = DIST,
    program: main = join(dist, 'main.js'),
    node = [process.execPath, ...OPTIONS],
    ...options
  }: WeirOptions): Promise<WeirProcess> {
    const [http, grpc, debug] = await freePorts(3);
    const folder = mkdtempSync(join(tmpdir(), 'weir-e2e-'));
    const command = [...node, '--require', END_WITH_PARENT, main] as const;
    const limited = openFiles === undefined ? command : withOpenFiles(openFiles, command);
    const permitted = options.underPermissions === true ? underPermissions([...limited]) : limited;
    const [program, ...args] = options.isFirst === true ? [...FIRST, ...permitted] : permitted;
    const child = spawn(program, args, {
      cwd: folder,
      stdio: ['ignore', outputs.stdout ?? 'pipe', outputs.stderr ?? 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HOST: '127.0.0.1',
        GRPC_HOST: '127.0.0.1',
        DEBUG_HOST: '127.0.0.1',
        PORT: String(http),
        GRPC_PORT: String(grpc),
        DEBUG_PORT: String(debug),
        LOG_LEVEL: 'info',
        BACKEND_TYPE: 'memory',
        // The clients of the tests stay connected.
        SHUTDOWN_DELAY: '0',
        ...env,
      },
    });
    return new WeirProcess(child, { http, grpc, debug: Number(env?.['DEBUG_PORT'] ?? debug) }, folder);
  }

  /** What it has written so far to standard error and standard output. */
  get output(): string {
    return this.#lines.join('\n');
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get grpcAddress(): string {
    return `127.0.0.1:${this.ports.grpc}`;
  }

  http(path: string, init?: RequestInit): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.ports.http}${path}`, init);
  }

  /** What the debug listener answers, on a connection of its own: it may close those that are kept for later. */
  async debug(path: string, init?: RequestInit): Promise<string> {
    const headers = { connection: 'close' };
    return (await fetch(`http://127.0.0.1:${this.ports.debug}${path}`, { headers, ...init })).text();
  }

  /** Status and text of `/healthcheck` on the debug listener. */
  async debugHealth(): Promise<readonly [number, string]> {
    const response = await fetch(`http://127.0.0.1:${this.ports.debug}/healthcheck`);
    return [response.status, await response.text()];
  }

  /** The statistics by name, as /stats shows them. */
  async statistics(): Promise<ReadonlyMap<string, number>> {
    const lines = (await this.debug('/stats')).trimEnd().split('\n');
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(': ')), Number(line.slice(line.lastIndexOf(' ')))]),
    );
  }

  async #serving({ outputs }: WeirOptions): Promise<void> {
    if (outputs?.stderr === undefined) await this.line(/msg="?serving|"@message":"serving"/);
    else await this.until('it serves', async () => (await this.debugHealth().catch(() => undefined))?.[0] === 200);
  }

  /** Stops reading its output: when the buffers of the system are full, its writes are not accepted. */
  pauseOutput(): void {
    for (const reader of this.#readers) reader.pause();
  }

  resumeOutput(): void {
    for (const reader of this.#readers) reader.resume();
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Sends a signal that is another one than the first, which it has received: more than a second later. */
  async signalAgain(name: NodeJS.Signals): Promise<void> {
    const since = performance.now();
    await this.until('a second to pass', () => performance.now() - since > 1_000);
    this.signal(name);
  }

  /** Waits for a line; fails when the process ends without it. */
  async line(pattern: RegExp): Promise<string> {
    return this.until(`a line like ${String(pattern)}`, () => this.#lines.find((line) => pattern.test(line)));
  }

  /** Polls until the value is neither undefined nor false. @param timeout in milliseconds */
  async until<T>(
    what: string,
    read: () => T | undefined | false | Promise<T | undefined | false>,
    timeout = TIMEOUT,
  ): Promise<T> {
    const deadline = Date.now() + timeout;
    for (;;) {
      const answer = await read();
      if (answer !== undefined && answer !== false) return answer;
      if (this.#isOver) throw new Error(`the process ended while waiting for ${what}:\n${this.output}`);
      if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}:\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isRunning) this.#child.kill('SIGKILL');
    await this.exited;
  }
}
