import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type Server, createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from './free-ports';

export const ENVOY = join(__dirname, '../../../.servers/envoy/envoy/_bin/envoy');
const CONFIG = join(__dirname, '../../../examples/envoy/envoy.yaml');
const TIMEOUT = 60_000;

export interface EnvoyOptions {
  readonly weirPort: number;
  /** The path of the configuration; default: that of examples/envoy. */
  readonly config?: string;
  /** Changes to the configuration, each a text and its replacement. */
  readonly changes?: readonly (readonly [from: string, to: string])[];
}

/** A real Envoy with a configuration of the project, in front of a small upstream. */
export class EnvoyProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #upstream: Server;
  readonly #own: string;
  readonly #port: number;
  readonly #adminPort: number;
  #output = '';

  private constructor(child: ChildProcess, upstream: Server, own: string, port: number, adminPort: number) {
    this.#child = child;
    this.#upstream = upstream;
    this.#own = own;
    this.#port = port;
    this.#adminPort = adminPort;
    child.stderr?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
  }

  static async start({ weirPort, config: file = CONFIG, changes = [] }: EnvoyOptions): Promise<EnvoyProcess> {
    const upstream = createServer((_request, response) => response.end('hello\n')).listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const upstreamPort = (upstream.address() as { port: number }).port;
    const [port, adminPort] = await freePorts(2);
    const own = await mkdtemp(join(tmpdir(), 'weir-envoy-'));
    const config = replaceAll(await readFile(file, 'utf8'), [
      ...changes,
      ['port_value: 10000', `port_value: ${port}`],
      ['port_value: 9901', `port_value: ${adminPort}`],
      ['port_value: 9000', `port_value: ${upstreamPort}`],
      ['port_value: 8081', `port_value: ${weirPort}`],
      // Envoy lets a request pass when the answer is late; on a busy machine that must not happen.
      ['timeout: 0.25s', 'timeout: 10s'],
    ]);
    await writeFile(join(own, 'envoy.yaml'), config);
    const child = spawn(
      ENVOY,
      ['-c', join(own, 'envoy.yaml'), '--disable-hot-restart', '--concurrency', '1', '-l', 'warning'],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    const envoy = new EnvoyProcess(child, upstream, own, port, adminPort);
    try {
      await envoy.#ready();
    } catch (error) {
      await envoy[Symbol.asyncDispose]();
      throw error;
    }
    return envoy;
  }

  /** The address of the administration interface. */
  get admin(): { readonly host: string; readonly port: number } {
    return { host: '127.0.0.1', port: this.#adminPort };
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.#port}${path}`, { headers });
  }

  /** Envoy's own counters, by name. */
  async statistics(): Promise<ReadonlyMap<string, number>> {
    const text = await (await fetch(`http://127.0.0.1:${this.#adminPort}/stats`)).text();
    return new Map(text.split('\n').map((line) => [line.split(': ')[0] ?? '', Number(line.split(': ')[1])]));
  }

  async #ready(): Promise<void> {
    const deadline = Date.now() + TIMEOUT;
    for (;;) {
      const state = await fetch(`http://127.0.0.1:${this.#adminPort}/ready`).catch(() => undefined);
      if (state?.status === 200) return;
      if (this.#child.exitCode !== null || Date.now() > deadline)
        throw new Error(`Envoy does not start:\n${this.#output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) {
      const exited = once(this.#child, 'exit');
      this.#child.kill('SIGKILL');
      await exited;
    }
    this.#upstream.closeAllConnections();
    this.#upstream.close();
    await rm(this.#own, { recursive: true, force: true });
  }
}

function replaceAll(text: string, changes: readonly (readonly [from: string, to: string])[]): string {
  return changes.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`the configuration of Envoy has no ${from}`);
    return changed.replaceAll(from, to);
  }, text);
}
