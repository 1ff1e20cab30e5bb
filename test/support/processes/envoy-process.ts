import { readFile, writeFile } from 'node:fs/promises';
import { type RequestListener, createServer } from 'node:http';
import { join } from 'node:path';
import { LocalServer } from '../servers/local-server';
import { Daemon } from './daemon';
import { freePorts } from './free-ports';

export const ENVOY = join(__dirname, '../../../.servers/envoy/envoy/_bin/envoy');
const CONFIG = join(__dirname, '../../../examples/envoy/envoy.yaml');

interface EnvoyOptions {
  readonly weirPort: number;
  /** The path of the configuration; default: that of examples/envoy. */
  readonly config?: string;
  /** What the upstream answers; default: `hello`. */
  readonly upstream?: RequestListener;
  /** Changes to the configuration, each a text and its replacement. */
  readonly changes?: readonly (readonly [from: string, to: string])[];
}

/** A real Envoy with a configuration of the project, in front of a small upstream. */
export class EnvoyProcess extends Daemon {
  readonly #options: EnvoyOptions;
  readonly #port: number;
  readonly #upstream: LocalServer;

  /** @param adminPort that of the administration interface */
  private constructor(
    options: EnvoyOptions,
    port: number,
    readonly adminPort: number,
  ) {
    super();
    this.#options = options;
    const { upstream = (_request, response) => response.end('hello\n') } = options;
    this.#upstream = new LocalServer(createServer(upstream));
    this.#port = port;
  }

  static async start(options: EnvoyOptions): Promise<EnvoyProcess> {
    return new EnvoyProcess(options, ...(await freePorts(2))).started();
  }

  async run(): Promise<void> {
    const { weirPort, config: file = CONFIG, changes = [] } = this.#options;
    await this.#upstream.listen();
    const config = replaceAll(await readFile(file, 'utf8'), [
      ...changes,
      ['port_value: 10000', `port_value: ${this.#port}`],
      ['port_value: 9901', `port_value: ${this.adminPort}`],
      ['port_value: 9000', `port_value: ${this.#upstream.port}`],
      ['port_value: 8081', `port_value: ${weirPort}`],
      // Envoy lets a request pass when the answer is late; on a busy machine that must not happen.
      ['timeout: 0.25s', 'timeout: 10s'],
    ]);
    await writeFile(join(this.folder, 'envoy.yaml'), config);
    this.launch(ENVOY, ...'-c envoy.yaml --disable-hot-restart --concurrency 1 -l warning'.split(' '));
    await this.until('Envoy is ready', async () => {
      if (this.lines.some((line) => line.includes('[critical]'))) throw new Error('Envoy does not start');
      const state = await fetch(`http://127.0.0.1:${this.adminPort}/ready`).catch(() => undefined);
      return state?.status === 200;
    });
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.fetch(path, { headers });
  }

  fetch(path: string, init: RequestInit): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#port}${path}`, init);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.#upstream[Symbol.asyncDispose]();
  }
}

function replaceAll(text: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`the configuration of Envoy has no ${from}`);
    return changed.replaceAll(from, to);
  }, text);
}
