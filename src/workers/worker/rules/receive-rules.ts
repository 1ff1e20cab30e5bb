import { Observable } from 'rxjs';
import { RowsBuilder } from '../../../rules/rows/rule-rows';
import type { Ruleset } from '../../../rules/ruleset';
import type { RuleEvent } from '../../../streams/ports/rule-source';
import type { Channel } from '../../channel/channel';
import { TOPICS } from '../../channel/topics';
import { RowsDecoder } from '../../rules/decode-rows';
import { RULE_MESSAGES, ruleMessage } from '../../rules/rule-messages';
import type { RequestGate } from './request-gate';

/** The rules of a worker: where the primary has them from is known there, and not needed here. */
const ORIGIN = { source: 'the primary process', version: '' };

/**
 * The rules that the primary distributes, each when all workers may decide with them; requests are parked meanwhile. Each message of
 * a transfer is processed in a turn of its own, so that decisions continue. Never fails; completes when the primary is gone.
 */
export function receiveRules(channel: Channel, gate: RequestGate): Observable<RuleEvent> {
  return new Observable((subscriber) => {
    const preparation = new Preparation();
    function answer(kind: Parameters<typeof ruleMessage>[0]): void {
      channel.send(TOPICS.rules, ruleMessage(kind));
    }
    subscriber.add(
      channel.frames(TOPICS.rules).subscribe({
        next: (message) => {
          switch (message[0]) {
            case RULE_MESSAGES.end:
              preparation.end();
              return answer(RULE_MESSAGES.prepared);
            case RULE_MESSAGES.hold:
              gate.hold();
              return answer(RULE_MESSAGES.held);
            case RULE_MESSAGES.commit: {
              const ruleset = preparation.take();
              if (ruleset !== undefined) subscriber.next({ kind: 'loaded', ruleset, origin: ORIGIN, warnings: [] });
              gate.release();
              return answer(RULE_MESSAGES.committed);
            }
            default:
              preparation.add(message);
              return answer(RULE_MESSAGES.next);
          }
        },
        complete: () => {
          gate.close();
          subscriber.complete();
        },
      }),
    );
  });
}

/** Rules that are being received, or wait to be committed. */
class Preparation {
  #decoder = new RowsDecoder();
  #builder = new RowsBuilder();
  #ruleset: Ruleset | undefined;

  add(message: Buffer): void {
    this.#builder.add(this.#decoder.add(message));
  }

  end(): void {
    this.#ruleset = this.#builder.done();
    this.#decoder = new RowsDecoder();
    this.#builder = new RowsBuilder();
  }

  /** Undefined when no rules have been prepared since the last time. */
  take(): Ruleset | undefined {
    const ruleset = this.#ruleset;
    this.#ruleset = undefined;
    return ruleset;
  }
}
