import { Observable, filter, map, share, take } from 'rxjs';
import { rowsOfRuleset } from '../../../rules/rows/rows-of-ruleset';
import type { Ruleset } from '../../../rules/ruleset';
import type { Channel } from '../../channel/channel';
import { TOPICS } from '../../channel/topics';
import { encodeRows } from '../../rules/encode-rows';
import { RULE_MESSAGES, ruleMessage } from '../../rules/rule-messages';
import type { RuleMember } from './rule-member';

/** The process of a worker. */
export type RuleMemberProcess = Pick<RuleMember, 'kill' | 'gone$'>;

/** A worker that receives rules over its channel: one message at a time, the next one when it has processed the last. */
export class ChannelMember implements RuleMember {
  readonly gone$: Observable<unknown>;
  readonly #channel: Channel;
  readonly #process: RuleMemberProcess;
  readonly #answers$: Observable<number | undefined>;

  constructor(channel: Channel, process: RuleMemberProcess) {
    this.#channel = channel;
    this.#process = process;
    this.gone$ = process.gone$;
    this.#answers$ = channel.frames(TOPICS.rules).pipe(
      map((body) => body[0]),
      share(),
    );
  }

  /** Emits when the worker has started and receives rules; only then can it be expected to answer in time. To be subscribed to at once. */
  get ready$(): Observable<unknown> {
    return this.#answer(RULE_MESSAGES.ready);
  }

  prepare(ruleset: Ruleset): Observable<unknown> {
    return new Observable((subscriber) => {
      const messages = encodeRows(rowsOfRuleset(ruleset));
      const channel = this.#channel;
      function send(): void {
        const { done, value } = messages.next();
        channel.send(TOPICS.rules, done === true ? ruleMessage(RULE_MESSAGES.end) : value);
      }
      subscriber.add(
        this.#answers$.subscribe((answer) => {
          if (answer === RULE_MESSAGES.prepared) return subscriber.complete();
          if (answer !== RULE_MESSAGES.next) return undefined;
          subscriber.next(undefined);
          return send();
        }),
      );
      send();
    });
  }

  hold(): Observable<unknown> {
    return this.#request(RULE_MESSAGES.hold, RULE_MESSAGES.held);
  }

  commit(): Observable<unknown> {
    return this.#request(RULE_MESSAGES.commit, RULE_MESSAGES.committed);
  }

  kill(reason: string): void {
    this.#process.kill(reason);
  }

  /** Completes when the worker has answered; does not when its channel is closed before. */
  #request(request: Parameters<typeof ruleMessage>[0], answer: number): Observable<unknown> {
    return new Observable((subscriber) => {
      subscriber.add(this.#answer(answer).subscribe(() => subscriber.complete()));
      this.#channel.send(TOPICS.rules, ruleMessage(request));
    });
  }

  #answer(answer: number): Observable<unknown> {
    return this.#answers$.pipe(
      filter((received) => received === answer),
      take(1),
    );
  }
}
