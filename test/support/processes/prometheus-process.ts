import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePorts } from './free-ports';
import { KeptProcess } from './kept-process';
import { until } from '../waiting/until';

export interface PrometheusOptions {
  /** Of the job `weir`, as `host:port`; they may come later. */
  readonly targets: readonly string[];
}

/** One series of a query result, and its value. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Result {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [time: number, value: string];
}
interface Answer<Data> {
  readonly status: 'success' | 'error';
  readonly data?: Data;
  readonly error?: string;
}

/** A real Prometheus that scrapes every second, queried by its HTTP API. It reloads its targets every 5 s. */
export class PrometheusProcess implements AsyncDisposable {
  readonly #kept: KeptProcess;
  readonly #port: number;
  readonly #folder: string;
  readonly #targets: number;
  private constructor(kept: KeptProcess, port: number, folder: string, targets: number) {
    this.#kept = kept;
    this.#port = port;
    this.#folder = folder;
    this.#targets = targets;
  }

  static async start({ targets }: PrometheusOptions): Promise<PrometheusProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'weir-prometheus-'));
    const [port] = await freePorts(1);
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '1s' },
      scrape_configs: [{ job_name: 'weir', static_configs: [{ targets }] }],
    };
    await writeFile(join(folder, 'prometheus.yml'), stringify(config));
    const kept = new KeptProcess([
      'prometheus',
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]);
    const prometheus = new PrometheusProcess(kept, port, folder, targets.length);
    await prometheus.until('it is ready', () => prometheus.#isReady());
    return prometheus;
  }

  /** The result of an API endpoint; fails with the endpoint's error message. */
  async api<Data>(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<Data> {
    const query = new URLSearchParams(parameters).toString();
    const address = `http://127.0.0.1:${this.#port}/api/v1/${path}?${query}`;
    const answer = (await (await fetch(address)).json()) as Answer<Data>;
    if (answer.data === undefined) throw new Error(`${path} ${JSON.stringify(parameters)}: ${answer.error}`);
    return answer.data;
  }

  /** The present result of an expression. */
  async query(expression: string): Promise<readonly Sample[]> {
    const { result } = await this.api<{ readonly result: readonly Result[] }>('query', { query: expression });
    return result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
  }

  /** The value of an expression that is one series. Waits for it: a scrape that is late leaves a gap until the next one. */
  async value(expression: string): Promise<number> {
    const [only, ...others] = await this.until(expression, async () => {
      const samples = await this.query(expression);
      return samples.length > 0 && samples;
    });
    if (others.length > 0) throw new Error(`${expression} is ${1 + others.length} series`);
    return only!.value;
  }

  /** One of Prometheus' own metrics, summed over its labels; undefined when there is none of that name. */
  async own(name: string): Promise<number | undefined> {
    const page = await (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text();
    const lines = page.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
    if (lines.length === 0) return undefined;
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  }

  /** Waits until every target has been scraped `times` times from now on. */
  async scraped(times: number): Promise<void> {
    const before = await this.#scrapes();
    await this.until(`${times} scrapes`, async () => (await this.#scrapes()) >= before + times);
  }

  /** As {@link until}; the error holds the program's last lines. */
  async until<T>(what: string, read: () => Promise<T | undefined | false>): Promise<T> {
    try {
      return await until(what, read);
    } catch (error) {
      throw new Error(`${String(error)}; Prometheus wrote:\n${this.#kept.lines.slice(-30).join('\n')}`, {
        cause: error,
      });
    }
  }

  /** Of the target that was scraped least; 0 while one is down. */
  async #scrapes(): Promise<number> {
    const counts = await this.query('sum_over_time(up{job="weir"}[1h]) and up{job="weir"} == 1');
    return counts.length < this.#targets ? 0 : Math.min(...counts.map(({ value }) => value));
  }

  async #isReady(): Promise<boolean> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/-/ready`).catch(() => undefined);
    return answer?.status === 200;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kept.crash();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
