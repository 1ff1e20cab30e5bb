import type { RuleFolder } from '../support/data/rule-folder';
import type { WeirProcess } from '../support/processes/weir-process';

/** A running service, as an attacker on the same machine sees it. */
export interface Target {
  readonly weir: WeirProcess;
  readonly ports: WeirProcess['ports'];
  readonly rules: RuleFolder;
  /** With TLS: the certificate authority to trust. */
  readonly ca?: string;
}

/**
 * What the attacker's peers received: the name of a gRPC status, `OVER_LIMIT`, an HTTP status, `closed` for a connection that the
 * service closed, `GOAWAY` and its error code, or `open` for what was still unfinished at the end.
 */
export type Answers = Set<string>;

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
  /** Attacks once and records the answers. Everything it opened is closed when it returns. */
  run(target: Target, answers: Answers): Promise<void>;
}
