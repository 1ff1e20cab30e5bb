import fc from 'fast-check';
import { NEVER, type Observable, lastValueFrom, toArray } from 'rxjs';
import { rowsOfRuleset } from '../../src/rules/rows/rows-of-ruleset';
import type { PlaceOf } from '../../src/rules/rule-place';
import { type Ruleset, buildRuleset } from '../../src/rules/ruleset';
import type { RuleEvent } from '../../src/streams/ports/rule-source';
import { ChannelMember } from '../../src/workers/primary/rules/channel-member';
import { RequestGate } from '../../src/workers/worker/rules/request-gate';
import { RuleReceiver } from '../../src/workers/worker/rules/rule-receiver';
import { arbitraryDomains } from '../support/data/arbitrary-rules';
import { request } from '../support/data/requests';
import { rulesetOf } from '../support/data/rules';
import { until } from '../support/waiting/until';
import { channelPair } from '../support/workers/channel-pair';

function connected() {
  const { primary, worker } = channelPair();
  const gate = new RequestGate();
  const rulesets: (Ruleset | undefined)[] = [];
  const receiver = new RuleReceiver(worker, gate);
  let joins = 0;
  receiver.joined$.subscribe(() => (joins += 1));
  const outcomes: string[] = [];
  receiver.events$.subscribe({
    next: (event: RuleEvent) => rulesets.push(event.kind === 'loaded' ? event.ruleset : undefined),
    complete: () => outcomes.push('end'),
  });
  const decide = gate.guard(({ domain }) => {
    outcomes.push(`${domain} is decided`);
    return { cancel: (cause) => outcomes.push(`${domain} is ${cause}`) };
  });
  function send(domain: string) {
    return decide(request(domain, ['k=v']), {
      verdict: () => undefined,
      error: ({ code }) => outcomes.push(`${domain} is ${code}`),
    });
  }
  const member = new ChannelMember(primary, { gone$: NEVER, kill: () => undefined });
  return { primary, member, rulesets, send, outcomes, joins: () => joins };
}

/** Waits until a worker has answered; the number of its signs of progress before. */
async function run(step: Observable<unknown>): Promise<number> {
  return (await lastValueFrom(step.pipe(toArray()))).length;
}

/** The rows of a ruleset, with texts instead of arrays: comparing large arrays element by element takes seconds. */
function rowsOf(ruleset: Ruleset | undefined): unknown {
  const text = JSON.stringify(ruleset && [...rowsOfRuleset(ruleset)], (_, value: unknown) =>
    value instanceof Int32Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex') : value,
  );
  return JSON.parse(text);
}

/** Different files and positions, and none for some rules. */
const placeOf: PlaceOf = ({ value }) =>
  value.length === 2 ? undefined : { file: `${value.length % 2}.yaml`, line: value.length, column: 3 };

describe('rules that are transferred to a worker', () => {
  it('are the same, and used when they are committed, and not before', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryDomains, async (configs) => {
        const { member, rulesets, joins } = connected();
        const ruleset = buildRuleset(configs, placeOf);
        // Replaced by the next ones, because it is not committed.
        await run(member.prepare(rulesetOf('old')));
        await run(member.prepare(ruleset));
        expect([rulesets, joins()]).toEqual([[], 0]);
        await run(member.commit());
        expect([rulesets.map(rowsOf), joins()]).toEqual([[rowsOf(ruleset)], 1]);
      }),
      { numRuns: 20 },
    );
  });

  it('need not be prepared for a commit; requests that are held wait for it, and are rejected if the primary is gone', async () => {
    const { primary, member, send, rulesets, outcomes, joins } = connected();
    await run(member.commit());
    expect([rulesets, joins()]).toEqual([[], 1]);
    await run(member.hold());
    const held = [send('held'), send('expired')] as const;
    held[1].cancel('deadline_exceeded');
    await run(member.commit());
    expect(outcomes).toEqual(['held is decided']);
    held[0].cancel('cancelled');
    await run(member.hold());
    send('parked');
    primary.close();
    await until('the worker has noticed', () => outcomes.includes('end'));
    send('late');
    expect(outcomes.slice(1)).toEqual(['held is cancelled', 'parked is shutting_down', 'end', 'late is shutting_down']);
  });
});
