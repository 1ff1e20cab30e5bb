import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { Daemon } from './daemon';
import { freePorts } from './free-ports';

/** One series of a query result, and its value. */
interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Result {
  readonly metric: Sample['labels'];
  readonly value: readonly [time: number, value: string];
}

/** A real Prometheus that scrapes every second, queried by its HTTP API. It reloads its targets every 5 s. */
export class PrometheusProcess extends Daemon {
  readonly #port: number;
  readonly #targets: readonly string[];

  private constructor(port: number, targets: readonly string[]) {
    super();
    this.#port = port;
    this.#targets = targets;
  }

  /** @param targets of the job `weir`, as `host:port`; they may come later */
  static async start({ targets }: { readonly targets: readonly string[] }): Promise<PrometheusProcess> {
    const [port] = await freePorts(1);
    return new PrometheusProcess(port, targets).started();
  }

  async run(): Promise<void> {
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '1s' },
      scrape_configs: [{ job_name: 'weir', static_configs: [{ targets: this.#targets }] }],
    };
    await writeFile(join(this.folder, 'prometheus.yml'), stringify(config));
    // Debian's default is a folder of the system.
    const storage = '--storage.tsdb.path=data';
    this.launch('prometheus', '--config.file=prometheus.yml', storage, `--web.listen-address=127.0.0.1:${this.#port}`);
    await this.until('it is ready', async () => {
      const answer = await fetch(`http://127.0.0.1:${this.#port}/-/ready`).catch(() => undefined);
      return answer?.status === 200;
    });
  }

  /** The result of an API endpoint; fails with the endpoint's error message. */
  async api<Data>(path: string, parameters: Readonly<Record<string, string>> = {}): Promise<Data> {
    const query = new URLSearchParams(parameters).toString();
    const address = `http://127.0.0.1:${this.#port}/api/v1/${path}?${query}`;
    const answer = (await (await fetch(address)).json()) as { data?: Data; error?: string };
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

  /** Of the target that was scraped least; 0 while one is down. */
  async #scrapes(): Promise<number> {
    const counts = await this.query('sum_over_time(up{job="weir"}[1h]) and up{job="weir"} == 1');
    return counts.length < this.#targets.length ? 0 : Math.min(...counts.map(({ value }) => value));
  }
}
