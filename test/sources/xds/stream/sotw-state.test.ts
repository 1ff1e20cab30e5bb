import { type Observable, firstValueFrom, of } from 'rxjs';
import { buildRuleset } from '../../../../src/rules/ruleset';
import { NO_PLACES } from '../../../../src/rules/rule-place';
import type { LoadedRules } from '../../../../src/sources/rule-thread/load-in-thread';
import { SotwState } from '../../../../src/sources/xds/stream/sotw-state';

const RESPONSE = { version: '1', nonce: 'n', digest: 'd', message: new Uint8Array() };
const VALID: LoadedRules = { ruleset: buildRuleset([], NO_PLACES), warnings: [] };
const INVALID: LoadedRules = { ruleset: undefined, errors: ['no domain'] };
const UNCHECKED: LoadedRules = { ruleset: undefined, errors: ['no memory'], isUnchecked: true };

/** Handles the same response once per outcome of loading it, and shows each event and the delay of the reply. */
async function outcomes(...loads: readonly LoadedRules[]): Promise<readonly string[]> {
  let next = 0;
  function load(): Observable<LoadedRules> {
    next += 1;
    return of(loads[next - 1] ?? INVALID);
  }
  const state = new SotwState({ node: { id: 'n', metadata: {} }, source: 'xDS', load });
  const shown: string[] = [];
  for (const _ of loads) {
    const { event, delay } = await firstValueFrom(state.handle(RESPONSE));
    const reason =
      event?.kind === 'rejected' ? ` ${event.reason.split('\n')[1]}${event.isRepeated ? ' again' : ''}` : '';
    shown.push(`${event?.kind}${reason}, reply after ${delay}`);
  }
  return shown;
}

describe('SotwState', () => {
  it('loads a response again that could not be checked, with a longer delay of each reply', async () => {
    expect(await outcomes(UNCHECKED, UNCHECKED, UNCHECKED, VALID)).toEqual([
      'rejected no memory, reply after 0',
      'rejected no memory again, reply after 1000',
      'rejected no memory again, reply after 2000',
      'loaded, reply after 0',
    ]);
  });

  it('rejects a response that could not be checked for its errors once these are found', async () => {
    expect(await outcomes(UNCHECKED, INVALID, VALID)).toEqual([
      'rejected no memory, reply after 0',
      'rejected no domain, reply after 0',
      'rejected no domain again, reply after 1000',
    ]);
  });

  it('does not load a response again whose rules are invalid', async () => {
    expect(await outcomes(INVALID, VALID)).toEqual([
      'rejected no domain, reply after 0',
      'rejected no domain again, reply after 1000',
    ]);
  });
});
