import { DecisionError } from '../../../limiter/decision-error';
import type { RateLimitRequest } from '../../../limiter/request';
import type { CancelCause, Decide, DecisionObserver, PendingDecision } from '../../../streams/ports/decide';

/**
 * Parks requests while the rules of all workers are being replaced. How many there can be is limited by what connections may have in
 * flight; callers can cancel them, as any request.
 */
export class RequestGate {
  /** In order of arrival. */
  readonly #parked = new Set<ParkedRequest>();
  #state: 'open' | 'held' | 'closed' = 'open';

  /** A `decide` that this gate controls. */
  guard(decide: Decide): Decide {
    return (request, observer) => {
      if (this.#state === 'open') return decide(request, observer);
      if (this.#state === 'closed') {
        reject(observer);
        return REJECTED;
      }
      const parked = new ParkedRequest(decide, request, observer, this.#parked);
      this.#parked.add(parked);
      return parked;
    };
  }

  hold(): void {
    if (this.#state === 'open') this.#state = 'held';
  }

  /** Decides the requests that are parked, in order, and then further ones as they arrive. */
  release(): void {
    if (this.#state !== 'held') return;
    for (const parked of this.#parked) parked.decide();
    this.#state = 'open';
  }

  /**
   * To be called when requests are held and the primary is gone. Parked requests and further ones fail: other workers may use the new
   * rules, or still the old ones, so that either could be a step back for a caller.
   */
  close(): void {
    if (this.#state !== 'held') return;
    this.#state = 'closed';
    for (const parked of this.#parked) parked.reject();
  }
}

class ParkedRequest implements PendingDecision {
  readonly #decide: Decide;
  readonly #request: RateLimitRequest;
  readonly #observer: DecisionObserver;
  readonly #parked: Set<ParkedRequest>;
  #pending: PendingDecision | undefined;

  constructor(
    ...[decide, request, observer, parked]: [Decide, RateLimitRequest, DecisionObserver, Set<ParkedRequest>]
  ) {
    this.#decide = decide;
    this.#request = request;
    this.#observer = observer;
    this.#parked = parked;
  }

  decide(): void {
    this.#parked.delete(this);
    this.#pending = this.#decide(this.#request, this.#observer);
  }

  reject(): void {
    this.#parked.delete(this);
    reject(this.#observer);
  }

  /** A request that is still parked has not been counted anywhere. */
  cancel(cause: CancelCause): void {
    if (!this.#parked.delete(this)) this.#pending?.cancel(cause);
  }
}

function reject(observer: DecisionObserver): void {
  observer.error(new DecisionError('shutting_down', 'the service is shutting down'));
}

const REJECTED: PendingDecision = { cancel: () => undefined };
