import { hash } from 'node:crypto';
import { type Observable, map, of } from 'rxjs';
import { type DiscoveryRequest, DiscoveryResponse } from '../../gen/envoy/service/discovery/v3/discovery';
import { backoff } from '../../streams/backoff';
import type { RuleEvent, RulesLoaded } from '../../streams/ports/rule-source';
import type { Settings } from '../../settings/settings';
import type { LoadedRules } from '../loading/load-rules';
import { messageOf } from '../../text/thrown';
import { RULES_TYPE_URL } from './check-resources';
import { AdsStreamError } from './connect-ads';

/** What has to be known of a response before its rules are checked. */
interface ReceivedResponse {
  readonly version: string;
  readonly nonce: string;
  /** Equal for the same rules, regardless of the order of the resources. */
  readonly digest: string;
}

/** @throws AdsStreamError when the bytes cannot be decoded as a `DiscoveryResponse` */
function readResponse(message: Uint8Array): ReceivedResponse {
  try {
    const { versionInfo, nonce, typeUrl, resources } = DiscoveryResponse.decode(message);
    const digests = resources.map((resource) => `${resource.typeUrl} ${hash('sha1', resource.value)}`);
    return { version: versionInfo, nonce, digest: hash('sha1', [typeUrl, ...digests.sort()].join('\n')) };
  } catch (error) {
    throw new AdsStreamError(`cannot decode a response: ${messageOf(error)}`, true);
  }
}

/** How this client identifies itself, and the server. */
export type XdsNodeSettings = Pick<
  Settings,
  'configGrpcXdsServerUrl' | 'configGrpcXdsNodeId' | 'configGrpcXdsNodeMetadata'
>;

/** Loads the rules of an encoded response. */
export type LoadResponse = (message: Uint8Array) => Observable<LoadedRules>;

/** The outcome of a response. */
export interface HandledResponse {
  /** Undefined when the response brings nothing new. */
  readonly event: RuleEvent | undefined;
  /** The ACK or NACK. */
  readonly reply: DiscoveryRequest;
  /** Milliseconds to wait before the reply is sent. */
  readonly delay: number;
}

/** The last accepted response. */
interface AcceptedResponse {
  readonly digest: string;
  readonly loaded: RulesLoaded;
}

/** The last rejected response. */
interface RejectedResponse extends Pick<ReceivedResponse, 'version' | 'digest'> {
  readonly errors: readonly string[];
  /** Whether its rules could not be checked: they may be valid, and are loaded again when it is sent again. */
  readonly isUnchecked: boolean;
  /** How often it was sent again on this stream; -1 when it has not been sent on this stream yet. */
  readonly repetitions: number;
}

/** gRPC's INVALID_ARGUMENT. */
const INVALID_ARGUMENT = 3;
/** In bytes of UTF-8. A server may drop the stream when the error detail is longer. */
const MAX_DETAIL_BYTES = 4096;
/** The delay of the NACK of a response that is rejected again. */
const NACK_DELAY = backoff({ initial: 1000, max: 30_000 });

/**
 * The state of the client in the state-of-the-world variant of xDS, across all streams: the last accepted version, and
 * the last rejected response.
 */
export class SotwState {
  readonly #node: NonNullable<DiscoveryRequest['node']>;
  readonly #load: LoadResponse;
  /** The human-readable name of the server. */
  readonly #source: string;
  #accepted: AcceptedResponse | undefined;
  #rejected: RejectedResponse | undefined;
  /** The reason of the last event if it was a rejection. */
  #lastReason: string | undefined;

  constructor(settings: XdsNodeSettings, load: LoadResponse) {
    const { configGrpcXdsNodeId: id, configGrpcXdsNodeMetadata: metadata } = settings;
    this.#node = { id, cluster: '', metadata };
    this.#load = load;
    this.#source = `xDS server ${settings.configGrpcXdsServerUrl}`;
  }

  /** The last accepted version; undefined before the first. */
  get version(): string | undefined {
    return this.#accepted?.loaded.origin.version;
  }

  /**
   * Begins a stream and returns its first request, without a version and a nonce: servers that have been started again
   * count versions from 1 again, and those that answer only to another version than theirs would never send their
   * rules. What they send again is recognised.
   */
  begin(): DiscoveryRequest {
    this.#rejected = this.#rejected && { ...this.#rejected, repetitions: -1 };
    return { ...this.#request(''), versionInfo: '' };
  }

  /**
   * Accepts or rejects an encoded response. Emits once and completes; never fails.
   *
   * @throws AdsStreamError when it cannot be decoded
   */
  handle(message: Uint8Array): Observable<HandledResponse> {
    const response = readResponse(message);
    const accepted = this.#accepted;
    if (accepted?.digest === response.digest) return of(this.#acceptAgain(accepted, response));
    const last = this.#rejected;
    const rejected = last?.digest === response.digest && last.version === response.version ? last : undefined;
    const repetition = rejected && rejected.repetitions + 1;
    if (rejected?.isUnchecked === false) return of(this.#reject(response, rejected, repetition));
    // Copied, because the message may be a view of a buffer that is shared.
    return this.#load(new Uint8Array(message)).pipe(
      map((loaded) => {
        if (loaded.ruleset !== undefined) return this.#accept(response, loaded);
        const { errors, isUnchecked = false } = loaded;
        // Each repetition is answered later than the one before, which also bounds how often the rules are loaded in
        // vain.
        return this.#reject(response, { errors, isUnchecked }, isUnchecked ? repetition : undefined);
      }),
    );
  }

  /** The rejection of a response that was sent but could not be received, and therefore cannot be answered. */
  rejectLost(reason: string): RuleEvent {
    return this.#rejectedEvent(`${this.#source}: ${reason}`);
  }

  #accept(
    { version, digest, nonce }: ReceivedResponse,
    { ruleset, warnings }: Pick<RulesLoaded, 'ruleset' | 'warnings'>,
  ): HandledResponse & { readonly event: RulesLoaded } {
    const event: RulesLoaded = { kind: 'loaded', origin: { source: this.#source, version }, ruleset, warnings };
    this.#accepted = { digest, loaded: event };
    this.#rejected = undefined;
    this.#lastReason = undefined;
    return { event, reply: this.#request(nonce), delay: 0 };
  }

  /**
   * A response with the active rules is a load only after a rejection. Otherwise only another version of them is
   * emitted.
   */
  #acceptAgain({ loaded: active }: AcceptedResponse, response: ReceivedResponse): HandledResponse {
    const isLoad = this.#lastReason !== undefined;
    const accepted = this.#accept(response, active);
    if (isLoad) return accepted;
    const isKnown = active.origin.version === response.version;
    return { ...accepted, event: isKnown ? undefined : { ...accepted.event, isResent: true } };
  }

  /**
   * Many servers send a rejected response again as soon as they receive the NACK: the NACK of a repeated response is
   * delayed, longer each time. (It has to be sent: without it such a server sends no new response either.)
   *
   * @param repetitions how often the response was rejected before on this stream
   */
  #reject(
    { version, digest, nonce }: ReceivedResponse,
    { errors, isUnchecked }: Pick<RejectedResponse, 'errors' | 'isUnchecked'>,
    repetitions = 0,
  ): HandledResponse {
    this.#rejected = { version, digest, errors, isUnchecked, repetitions };
    const reason = [`${this.#source}, version ${version}:`, ...errors].join('\n');
    const errorDetail = { code: INVALID_ARGUMENT, message: truncated(errors.join('\n')) };
    return {
      event: this.#rejectedEvent(reason),
      reply: { ...this.#request(nonce), errorDetail },
      delay: repetitions === 0 ? 0 : NACK_DELAY(repetitions),
    };
  }

  #rejectedEvent(reason: string): RuleEvent {
    const isRepeated = reason === this.#lastReason;
    this.#lastReason = reason;
    return { kind: 'rejected', reason, ...(isRepeated && { isRepeated }) };
  }

  #request(responseNonce: string): DiscoveryRequest {
    return {
      versionInfo: this.version ?? '',
      node: this.#node,
      resourceNames: [],
      typeUrl: RULES_TYPE_URL,
      responseNonce,
      errorDetail: undefined,
    };
  }
}

function truncated(text: string): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_DETAIL_BYTES));
  return text.slice(0, read);
}
