import type { Trouble } from '../../streams/server-report';
import { QUIET } from '../../streams/server-state';
import type { ShownServer } from '../../streams/server-views';
import { counted } from '../../text/counted';
import { shortened } from '../../text/excerpt';
import { TROUBLES, durationText } from '../health';
import type { OutageMark } from '../live-answers';

/** Outages that are kept. */
const MOST = 200;

/** An outage of a server. Dates are Unix milliseconds. */
interface Outage {
  readonly server: string;
  readonly store: string;
  began: number;
  /** Undefined: it lasts. */
  ended: number | undefined;
  /** The last condition of it. */
  condition: Trouble | undefined;
  /** As of a `Fault`; undefined: it is not known yet. */
  calls: number | undefined;
}

/** Keeps the outages of servers. Those of the same server that follow each other within five seconds are one. */
export class Outages {
  readonly #all: Outage[] = [];
  /** The last one of each server. */
  readonly #last = new Map<string, Outage>();

  /** To be called at each change, with all servers. */
  see(servers: readonly ShownServer[]): void {
    const gone = new Map(this.#last);
    for (const server of servers) {
      const key = keyOf(server);
      gone.delete(key);
      this.#see(key, server);
    }
    for (const outage of gone.values()) {
      if (outage.ended !== undefined) continue;
      // The last of its calls are not known.
      Object.assign(outage, { ended: Date.now(), calls: undefined });
    }
  }

  /** @param policy of calls that a server does not count */
  marks(policy: OutageMark['policy']): readonly OutageMark[] {
    return this.#all.map((outage) => ({ ...markOf(outage), policy }));
  }

  #see(key: string, server: ShownServer): void {
    const { condition, troubleSince, lastFault } = server;
    if (lastFault !== undefined) {
      const { began, milliseconds, calls } = lastFault;
      const ended = began + milliseconds;
      // One of before the last that is known is known, too.
      if (ended + QUIET > (this.#last.get(key)?.began ?? -Infinity)) {
        const outage = this.#outageAt(key, server, began);
        Object.assign(outage, { began: Math.min(began, outage.began), ended, calls });
      }
    }
    if (troubleSince !== undefined) {
      const outage = this.#outageAt(key, server, troubleSince);
      const began = Math.min(troubleSince, outage.began);
      Object.assign(outage, { began, ended: undefined, condition: condition as Trouble });
    } else {
      const last = this.#last.get(key);
      if (last !== undefined) last.ended ??= Date.now();
    }
    const present = this.#last.get(key);
    if (present !== undefined && server.affected !== undefined) present.calls = server.affected;
  }

  /** The last outage of a server, or a new one that began long after it has ended. */
  #outageAt(key: string, { server, store = '' }: ShownServer, began: number): Outage {
    const last = this.#last.get(key);
    if (last !== undefined && began < (last.ended ?? Infinity) + QUIET) return last;
    const outage: Outage = {
      ...{ server: shortened(server), store, began },
      ...{ ended: undefined, condition: undefined, calls: undefined },
    };
    this.#last.set(key, outage);
    this.#all.push(outage);
    if (this.#all.length > MOST) {
      const oldest = this.#all.shift()!;
      if (this.#last.get(keyOf(oldest)) === oldest) this.#last.delete(keyOf(oldest));
    }
    return outage;
  }
}

function keyOf({ server, store = '' }: Pick<ShownServer, 'server' | 'store'>): string {
  return `${store} ${shortened(server)}`;
}

function markOf({ server, store, began, ended, condition, calls }: Outage): Omit<OutageMark, 'policy'> {
  const what = condition === undefined ? 'did not answer' : `was ${TROUBLES[condition]}`;
  const cost =
    calls === undefined ? '' : `; ${calls === 0 ? 'no call has' : `${counted(calls, 'call')} have`} missed it`;
  const text =
    ended === undefined
      ? `${server} is ${TROUBLES[condition ?? 'silent']}`
      : `${server} ${what} for ${durationText((ended - began) / 1000)}${cost}`;
  const until = ended === undefined ? null : Math.round(ended / 1000);
  return { at: Math.round(began / 1000), kind: 'store', text, until, server, store, calls: calls ?? null };
}
