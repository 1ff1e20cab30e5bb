import { join } from 'node:path';
import { Daemon } from './daemon';

const MAIN = join(__dirname, '../../../dist/main.js');

/** The built service as systemd starts it: at the first connection to a socket that it inherits. */
export class SocketActivated extends Daemon {
  readonly #addresses: readonly string[];
  readonly #options: readonly string[];

  private constructor(sockets: Readonly<Record<string, string | number>>, env: Readonly<Record<string, string>>) {
    super();
    this.#addresses = Object.values(sockets).map((at) => `--listen=${typeof at === 'number' ? `127.0.0.1:${at}` : at}`);
    const settings = Object.entries(env).map(([name, value]) => `--setenv=${name}=${value}`);
    this.#options = [`--fdname=${Object.keys(sockets).join(':')}`, ...settings];
  }

  /**
   * @param sockets where to listen, by the name of the listener: a port of 127.0.0.1, or the path of a Unix socket
   * @returns when all are listened on
   */
  static listen(
    sockets: Readonly<Record<string, string | number>>,
    env: Readonly<Record<string, string>>,
  ): Promise<SocketActivated> {
    return new SocketActivated(sockets, env).started();
  }

  async run(): Promise<void> {
    this.launch('systemd-socket-activate', ...this.#addresses, ...this.#options, process.execPath, MAIN);
    await this.until('all sockets are listened on', () => {
      return this.lines.filter((line) => line.startsWith('Listening on ')).length === this.#addresses.length;
    });
  }

  /** What it has written. */
  get output(): string {
    return this.lines.join('\n');
  }

  /** Waits for a line. */
  line(pattern: RegExp): Promise<string> {
    return this.until(`there is a line like ${String(pattern)}`, () => this.lines.find((line) => pattern.test(line)));
  }
}
