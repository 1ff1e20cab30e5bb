import { AsyncSubject, Observable } from 'rxjs';
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

/** Receives the rules that the primary distributes. */
export class RuleReceiver {
  /**
   * The rules, each when all workers may decide with them; requests are parked meanwhile. Each message of a transfer is processed in
   * a turn of its own, so that decisions continue. Subscribing, once, announces to the primary that it may send rules. Never fails;
   * completes when the primary is gone.
   */
  readonly events$: Observable<RuleEvent>;
  readonly #joined$ = new AsyncSubject<void>();
  readonly #channel: Channel;
  readonly #gate: RequestGate;
  readonly #preparation = new Preparation();

  constructor(channel: Channel, gate: RequestGate) {
    this.#channel = channel;
    this.#gate = gate;
    this.events$ = new Observable((subscriber) => {
      subscriber.add(
        channel.frames(TOPICS.rules).subscribe({
          next: (message) => this.#answer(message, (event) => subscriber.next(event)),
          complete: () => {
            gate.close();
            subscriber.complete();
          },
        }),
      );
      this.#send('ready');
    });
  }

  /** Emits when the worker has the rules of the others for the first time, or may decide without; until then it must not decide. */
  get joined$(): Observable<void> {
    return this.#joined$.asObservable();
  }

  #answer(message: Buffer, emit: (event: RuleEvent) => void): void {
    switch (message[0]) {
      case RULE_MESSAGES.end:
        this.#preparation.end();
        return this.#send('prepared');
      case RULE_MESSAGES.hold:
        this.#gate.hold();
        return this.#send('held');
      case RULE_MESSAGES.commit:
        this.#commit(emit);
        return this.#send('committed');
      default:
        this.#preparation.add(message);
        return this.#send('next');
    }
  }

  #commit(emit: (event: RuleEvent) => void): void {
    const ruleset = this.#preparation.take();
    if (ruleset !== undefined) emit({ kind: 'loaded', ruleset, origin: ORIGIN, warnings: [] });
    this.#gate.release();
    this.#joined$.next();
    this.#joined$.complete();
  }

  #send(kind: 'ready' | 'next' | 'prepared' | 'held' | 'committed'): void {
    this.#channel.send(TOPICS.rules, ruleMessage(RULE_MESSAGES[kind]));
  }
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
