/** A running service, as an attacker on the same machine sees it. */
export interface Target {
  readonly pid: number;
  readonly ports: { readonly http: number; readonly grpc: number; readonly debug: number };
  /** The folder of the rule files. */
  readonly rules: string;
}

/**
 * What the attacker's peers received, and how often: the name of a gRPC status, `OVER_LIMIT`, an HTTP status, `closed` for a
 * connection that the service closed, `GOAWAY` and its error code, or `open` for what was still unfinished at the end.
 */
export class Answers {
  readonly #counts = new Map<string, number>();

  add(answer: string, times = 1): void {
    if (times > 0) this.#counts.set(answer, (this.#counts.get(answer) ?? 0) + times);
  }

  get kinds(): readonly string[] {
    return [...this.#counts.keys()].toSorted();
  }

  entries(): Iterable<readonly [answer: string, count: number]> {
    return this.#counts;
  }

  toString(): string {
    return [...this.#counts].map(([answer, count]) => `${count} ${answer}`).join(', ');
  }
}

/** An attack on a running service. The row of the table in test/README.md is its key in `attacks.ts`. */
export interface Attack {
  /** Settings of the service, in addition to those of every attack. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Rule files in addition to those of the well-behaved client, by name. */
  readonly rules?: Readonly<Record<string, string>>;
  readonly store?: 'memory' | 'redis';
  /** Whether the gRPC listener uses TLS, with `tls.crt` and `tls.key` next to the folder of the rule files. */
  readonly isTls?: boolean;
  /** An output of the service that no process reads. */
  readonly unread?: 'stderr' | 'stdout';
  /**
   * Attacks once and records the answers. Everything it opened is closed when it returns. The benchmark calls it again and again,
   * in its own process.
   */
  run(target: Target, answers: Answers): Promise<void>;
}
