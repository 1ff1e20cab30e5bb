import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../waiting/until';
import { KeptProcess } from './kept-process';

const MAIN = join(__dirname, '../../../dist/main.js');
/** Runs a program in a folder, with the id of its process in the first line. */
const WITH_PID = 'echo "pid $$"; cd "$1"; shift; exec "$@"';

/** The built service as systemd starts it: at the first connection to a socket that it inherits. */
export class SocketActivated implements AsyncDisposable {
  readonly #process: KeptProcess;
  readonly #folder: string;

  private constructor(started: KeptProcess, folder: string) {
    this.#process = started;
    this.#folder = folder;
  }

  /**
   * @param sockets where to listen, by the name of the listener: a port of 127.0.0.1, or the path of a Unix socket
   * @returns when all are listened on
   */
  static async listen(
    sockets: Readonly<Record<string, string | number>>,
    env: Readonly<Record<string, string>>,
  ): Promise<SocketActivated> {
    const folder = await mkdtemp(join(tmpdir(), 'weir-activated-'));
    const addresses = Object.values(sockets).map((at) => `--listen=${typeof at === 'number' ? `127.0.0.1:${at}` : at}`);
    const command = [
      'systemd-socket-activate',
      ...addresses,
      `--fdname=${Object.keys(sockets).join(':')}`,
      ...Object.entries(env).map(([name, value]) => `--setenv=${name}=${value}`),
      process.execPath,
      MAIN,
    ];
    const activated = new SocketActivated(new KeptProcess(['sh', '-c', WITH_PID, 'sh', folder, ...command]), folder);
    await until('all sockets are listened on', () => activated.#count(/^Listening on /gm) === addresses.length);
    return activated;
  }

  /** What it has written. */
  get output(): string {
    return this.#process.lines.join('\n');
  }

  /** Waits for a line. */
  async line(pattern: RegExp): Promise<string> {
    return until(`there is a line like ${String(pattern)} in:\n${this.output}`, () =>
      this.#process.lines.find((line) => pattern.test(line)),
    );
  }

  signal(name: NodeJS.Signals): void {
    process.kill(Number(/^pid (\d+)$/m.exec(this.output)?.[1]), name);
  }

  #count(pattern: RegExp): number {
    return this.output.match(pattern)?.length ?? 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.crash();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
