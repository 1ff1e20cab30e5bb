import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  catchError,
  concat,
  defer,
  filter,
  finalize,
  map,
  of,
  tap,
  throwError,
} from 'rxjs';
import type { Log } from '../../streams/ports/log';
import type { RuleEvent, RuleSource } from '../../streams/ports/rule-source';
import { AdsStreamError, type ConnectAds } from './ads';
import { SotwState, type XdsNode } from './sotw-state';
import type { BackoffOptions } from './backoff';
import { type LoadResourcesOptions, loadResources } from './load-resources';
import { messageOf } from '../../text/thrown';
import { type AttemptEnd, reconnect } from './reconnect';
import { LASTING, type TalkEvent, adsStream } from './ads-stream';

export interface XdsRuleOptions extends LoadResourcesOptions {
  /** The address of the server, for people. */
  readonly server: string;
  readonly connect: ConnectAds;
  readonly node: XdsNode;
  readonly backoff: BackoffOptions;
  readonly log: Log;
  /** Told when the connection to the server stands and when it no longer does. */
  readonly onConnection?: (stands: boolean) => void;
  /** From 0 to 1. */
  readonly random?: () => number;
  readonly scheduler?: SchedulerLike;
}

type SourceEvent = TalkEvent | { readonly kind: 'lost'; readonly event: RuleEvent };

/**
 * Rules from a management server: state of the world over the aggregated discovery service. Each response is answered, good
 * rules are told, bad ones are told as rejected, as often as the server sends them. A stream that ends is opened again, for
 * ever; the rules in force stay.
 *
 * Good rules that are in force already are not told again, unless a rejection or another version came between.
 */
export function xdsRuleSource(options: XdsRuleOptions): RuleSource {
  const { server, connect, node, backoff, random = Math.random, scheduler = asyncScheduler } = options;
  const { onConnection = () => undefined } = options;
  const source = `xDS server ${server}`;
  const events$ = defer(() => {
    const agreement = new SotwState({ node, source, load: (message) => loadResources(message, options) });
    const journal = new Journal(options, agreement);
    return adsStream(connect, agreement, scheduler).pipe(
      tap((event) => journal.note(event)),
      catchError((error: unknown): Observable<SourceEvent> => {
        const failed$ = throwError(() => error);
        return isLoss(error)
          ? concat(of({ kind: 'lost', event: agreement.lose(error.message) } as const), failed$)
          : failed$;
      }),
      finalize(() => onConnection(false)),
      reconnect({
        backoff,
        works: ({ kind }) => kind === 'handled' || kind === 'lasted',
        // The server would send the same again at once.
        fails: isLoss,
        onEnd: (end) => journal.noteEnd(end),
        random,
        scheduler,
      }),
      map((event) => (event.kind === 'handled' || event.kind === 'lost' ? event.event : undefined)),
      filter((event) => event !== undefined),
    );
  });
  return { events$ };
}

function isLoss(error: unknown): error is AdsStreamError {
  return error instanceof AdsStreamError && error.hasLostRules;
}

/** Tells the log how it stands with the server: once for each turn that things take, not for each attempt. */
class Journal {
  readonly #options: XdsRuleOptions;
  readonly #agreement: SotwState;
  /** Why there is no stream; undefined while there is one. */
  #trouble: string | undefined;
  #hasAnswered = false;

  constructor(options: XdsRuleOptions, agreement: SotwState) {
    this.#options = options;
    this.#agreement = agreement;
  }

  note(event: TalkEvent): void {
    const { server, node, log, onConnection } = this.#options;
    switch (event.kind) {
      case 'connected':
        this.#trouble = undefined;
        onConnection?.(true);
        log.info('connected to the xDS server', { server, node: node.id, version: this.#agreement.version });
        break;
      case 'handled':
        this.#hasAnswered = true;
        break;
      case 'lasted':
        if (!this.#hasAnswered) {
          const seconds = LASTING / 1000;
          log.warn(`the xDS server has sent no rules for ${seconds} s: it may not know this node`, {
            server,
            node: node.id,
          });
        }
    }
  }

  noteEnd({ error, failures, wait }: AttemptEnd): void {
    const { server, log } = this.#options;
    const trouble = error === undefined ? 'the server ended the stream' : messageOf(error);
    const fields = { server, wait: `${Math.round(wait)}ms` };
    if (trouble === this.#trouble || isLoss(error)) {
      log.debug(`still no stream from the xDS server: ${trouble}`, fields);
    } else if (failures === 0) {
      log.info(`the stream from the xDS server ended; it is opened again: ${trouble}`, fields);
    } else {
      log.warn(
        `no stream from the xDS server, the rules in force stay; it is tried again and again: ${trouble}`,
        fields,
      );
    }
    this.#trouble = trouble;
  }
}
