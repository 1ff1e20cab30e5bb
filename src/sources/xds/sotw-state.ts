import { type Observable, map, of } from 'rxjs';
import type { DiscoveryRequest } from '../../gen/envoy/service/discovery/v3/discovery';
import type { Ruleset } from '../../rules/ruleset';
import type { RuleEvent } from '../../streams/ports/rule-source';
import type { LoadedRules } from '../rule-thread/load-in-thread';
import type { ReadResponse } from './read-response';
import { RULES_TYPE_URL } from './ads';

/** Who we are to the server. */
export interface XdsNode {
  /** CONFIG_GRPC_XDS_NODE_ID */
  readonly id: string;
  /** CONFIG_GRPC_XDS_NODE_METADATA */
  readonly metadata: Readonly<Record<string, string>>;
}

/** What became of a response. */
export interface Judgement {
  /** Undefined: it brings nothing new. */
  readonly event: RuleEvent | undefined;
  readonly reply: DiscoveryRequest;
  /** Milliseconds to let pass before the reply is sent. */
  readonly delay: number;
}

export interface AgreementOptions {
  readonly node: XdsNode;
  /** The server, for people. */
  readonly source: string;
  /** Makes rules of an encoded response. */
  readonly load: (message: Uint8Array) => Observable<LoadedRules>;
}

/** The rules that we and the server agree on. */
interface AgreedRules {
  readonly version: string;
  readonly digest: string;
  readonly ruleset: Ruleset;
  readonly warnings: readonly string[];
}

/** The response that was refused last. */
interface Refused {
  readonly version: string;
  readonly digest: string;
  readonly errors: readonly string[];
  /** How often it came again on this stream; -1: it did not come on this one yet. */
  readonly repetitions: number;
}

/** gRPC's INVALID_ARGUMENT. */
const INVALID_ARGUMENT = 3;
/** A server that gets an explanation longer than this may drop the stream. */
const LONGEST_DETAIL = 4096;
const FIRST_DELAY = 1000;
const LONGEST_DELAY = 30_000;

/**
 * What client and server have agreed on so far, over all streams: which version is in force, and what was refused (the
 * state-of-the-world protocol of xDS, document 1, section 2.4).
 */
export class SotwState {
  readonly #options: AgreementOptions;
  #agreed: AgreedRules | undefined;
  #refused: Refused | undefined;
  #lost: string | undefined;
  #isRefusalToldLast = false;

  constructor(options: AgreementOptions) {
    this.#options = options;
  }

  /** The last version that was accepted; undefined before the first. */
  get version(): string | undefined {
    return this.#agreed?.version;
  }

  /** Begins a stream: its first request has the last accepted version, and no nonce, because nonces belong to a stream. */
  begin(): DiscoveryRequest {
    this.#refused = this.#refused && { ...this.#refused, repetitions: -1 };
    return this.#request('');
  }

  /** Looks at a response. Emits once and completes; never fails. */
  judge(response: ReadResponse): Observable<Judgement> {
    const agreed = this.#agreed;
    if (agreed?.digest === response.digest) return of(this.#acceptAgain(agreed, response));
    const refused = this.#refused;
    if (refused?.digest === response.digest && refused.version === response.version) {
      return of(this.#refuse(response, refused.errors, refused.repetitions + 1, true));
    }
    return this.#options
      .load(response.message)
      .pipe(
        map((loaded) =>
          loaded.ruleset === undefined
            ? this.#refuse(response, loaded.errors, 0, false)
            : this.#accept(response, loaded),
        ),
      );
  }

  /** Says that rules were sent which could not be received, and so cannot be answered. */
  lose(reason: string): RuleEvent {
    const isRepeated = this.#lost === reason;
    this.#lost = reason;
    this.#isRefusalToldLast = true;
    return rejected(`${this.#options.source}: ${reason}`, isRepeated);
  }

  #accept({ version, digest, nonce }: ReadResponse, rules: Pick<AgreedRules, 'ruleset' | 'warnings'>): Judgement {
    this.#agreed = { version, digest, ruleset: rules.ruleset, warnings: rules.warnings };
    this.#refused = undefined;
    this.#lost = undefined;
    this.#isRefusalToldLast = false;
    return { event: this.#loaded(this.#agreed), reply: this.#request(nonce), delay: 0 };
  }

  /** The rules are those in force: they are told only when somebody could think otherwise, or under a new version. */
  #acceptAgain(agreed: AgreedRules, response: ReadResponse): Judgement {
    const isToldAlready = agreed.version === response.version && !this.#isRefusalToldLast;
    const accepted = this.#accept(response, agreed);
    return isToldAlready ? { ...accepted, event: undefined } : accepted;
  }

  /**
   * Many servers send what is refused again at once, and do so for as long as it is refused at once: a refusal that is repeated
   * is sent after a wait that grows. (It has to be sent: without an answer they send nothing new either.)
   */
  #refuse(
    { version, digest, nonce }: ReadResponse,
    errors: readonly string[],
    repetitions: number,
    isRepeated: boolean,
  ): Judgement {
    this.#refused = { version, digest, errors, repetitions };
    this.#isRefusalToldLast = true;
    const errorDetail = { code: INVALID_ARGUMENT, message: cut(errors.join('\n')) };
    return {
      event: rejected([`${this.#options.source}, version ${version}:`, ...errors].join('\n'), isRepeated),
      reply: { ...this.#request(nonce), errorDetail },
      delay: repetitions === 0 ? 0 : Math.min(FIRST_DELAY * 2 ** (repetitions - 1), LONGEST_DELAY),
    };
  }

  #loaded({ ruleset, version, warnings }: AgreedRules): RuleEvent {
    return { kind: 'loaded', ruleset, origin: { source: this.#options.source, version }, warnings };
  }

  #request(responseNonce: string): DiscoveryRequest {
    const { id, metadata } = this.#options.node;
    return {
      versionInfo: this.version ?? '',
      node: { id, cluster: '', metadata },
      resourceNames: [],
      typeUrl: RULES_TYPE_URL,
      responseNonce,
      errorDetail: undefined,
    };
  }
}

function rejected(reason: string, isRepeated: boolean): RuleEvent {
  return { kind: 'rejected', reason, ...(isRepeated && { isRepeated }) };
}

function cut(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(LONGEST_DETAIL));
  return text.slice(0, read);
}
