import { NEVER, Subject, firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { type Ruleset, buildRuleset, matchRule } from '../../../../src/rules/ruleset';
import type { RuleEvent } from '../../../../src/streams/ports/rule-source';
import { ChannelMember } from '../../../../src/workers/primary/rules/channel-member';
import { RuleReceiver } from '../../../../src/workers/worker/rules/rule-receiver';
import { StreamChannel } from '../../../../src/workers/channel/stream-channel';
import { RequestGate } from '../../../../src/workers/worker/rules/request-gate';
import { request } from '../../../support/data/requests';
import { limit, ruleConfig, rulesetOf } from '../../../support/data/rules';
import { channelPair } from '../../../support/workers/channel-pair';
import { until } from '../../../support/waiting/until';

function connected() {
  const { primary, worker } = channelPair();
  const gate = new RequestGate();
  const events: RuleEvent[] = [];
  const receiver = new RuleReceiver(worker, gate);
  let joins = 0;
  receiver.joined$.subscribe(() => (joins += 1));
  receiver.events$.subscribe({ next: (event) => events.push(event), complete: () => events.push(END) });
  const decided: string[] = [];
  const decide = gate.guard(({ domain }) => {
    decided.push(domain);
    return { cancel: () => undefined };
  });
  function send(domain: string, errors: string[] = []) {
    const observer = { verdict: () => undefined, error: ({ code }: { readonly code: string }) => errors.push(code) };
    decide(request(domain, ['k=v']), observer);
  }
  const member = new ChannelMember(primary, { gone$: NEVER, kill: () => undefined });
  return { primary, worker, member, events, send, decided, joins: () => joins };
}

const END: RuleEvent = { kind: 'rejected', reason: 'end' };

/** Waits until a worker has answered; the number of its signs of progress before. */
async function run(step: ReturnType<ChannelMember['prepare']>): Promise<number> {
  return (await lastValueFrom(step.pipe(toArray()))).length;
}

function rulesetIn(event: RuleEvent | undefined): Ruleset | undefined {
  return event?.kind === 'loaded' ? event.ruleset : undefined;
}

describe('rules that are transferred to a worker', () => {
  it('are used when they are committed, and not before', async () => {
    const { member, events, joins } = connected();
    await run(member.prepare(rulesetOf('shop', { key: 'user', rateLimit: limit(5, 'HOUR') })));
    expect([events, joins()]).toEqual([[], 0]);
    await run(member.commit());
    expect(joins()).toBe(1);
    const rules = rulesetIn(events[0])?.domain('shop');
    expect(rules && matchRule(rules, [{ key: 'user', value: 'x' }])?.limit?.requestsPerUnit).toBe(5);
  });

  it('are requested by the worker when it has started', async () => {
    const { primary, worker } = channelPair();
    const member = new ChannelMember(primary, { gone$: NEVER, kill: () => undefined });
    let isReady = false;
    const ready = firstValueFrom(member.ready$).then(() => (isReady = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(isReady).toBe(false);
    const subscription = new RuleReceiver(worker, new RequestGate()).events$.subscribe();
    expect(await ready).toBe(true);
    subscription.unsubscribe();
  });

  it('arrive in parts, the next one when the worker has processed the last', async () => {
    const rules = Array.from({ length: 100_000 }, (_, index) => ({ key: 'user', value: `u${index}` }));
    const { primary, worker, member, events } = connected();
    const sent = jest.spyOn(primary, 'send');
    const answered = jest.spyOn(worker, 'send');
    let most = 0;
    sent.mockImplementation((topic, body) => {
      most = Math.max(most, sent.mock.calls.length - answered.mock.calls.length);
      StreamChannel.prototype.send.call(primary, topic, body);
    });
    const ruleset = buildRuleset([{ domain: 'shop', descriptors: rules.map(ruleConfig) }]);
    const steps = await run(member.prepare(ruleset));
    expect(steps).toBeGreaterThanOrEqual(500);
    expect(most).toBe(1);
    await run(member.commit());
    expect(rulesetIn(events[0])?.size).toBe(100_000);
  });

  it('replace those that were prepared before and not committed', async () => {
    const { member, events } = connected();
    await run(member.prepare(rulesetOf('old')));
    await run(member.prepare(rulesetOf('new')));
    await run(member.commit());
    expect(events.map((event) => [...(rulesetIn(event)?.domains.keys() ?? [])])).toEqual([['new']]);
  });

  it('park requests between hold and commit, and decide these with the new rules', async () => {
    const { member, events, send, decided } = connected();
    await run(member.prepare(rulesetOf('shop')));
    send('before');
    await run(member.hold());
    send('parked');
    expect(decided).toEqual(['before']);
    const active = until('the rules are active', () => events.length === 1 && decided.length);
    await run(member.commit());
    expect(decided).toEqual(['before', 'parked']);
    expect(await active).toBe(2);
  });

  it('need not be prepared for a commit, after which the worker decides without', async () => {
    const { member, events, send, decided, joins } = connected();
    await run(member.commit());
    expect(joins()).toBe(1);
    send('a');
    expect(events).toEqual([]);
    expect(decided).toEqual(['a']);
  });

  it('end when the primary is gone; requests that are parked then are rejected', async () => {
    const { primary, member, events, send } = connected();
    const errors: string[] = [];
    await run(member.hold());
    send('parked', errors);
    primary.close();
    await until('the worker has noticed', () => events.includes(END));
    expect(errors).toEqual(['shutting_down']);
  });

  it('stay unanswered when the worker is gone', async () => {
    const { primary, worker, member } = connected();
    const outcomes: string[] = [];
    const observer = { next: () => outcomes.push('next'), complete: () => outcomes.push('complete') };
    worker.close();
    await firstValueFrom(primary.closed$);
    const rules = rulesetOf('shop');
    const steps = [member.prepare(rules), member.hold(), member.commit()].map((step) => step.subscribe(observer));
    const turn = new Subject<void>();
    setImmediate(() => turn.next());
    await firstValueFrom(turn);
    expect(outcomes).toEqual([]);
    for (const step of steps) step.unsubscribe();
  });
});
