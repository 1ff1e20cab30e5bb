import type { DecisionError } from '../../../../src/limiter/decision-error';
import type { RateLimitRequest } from '../../../../src/limiter/request';
import { Code, type Verdict } from '../../../../src/limiter/verdict';
import type { Decide, DecisionObserver } from '../../../../src/streams/ports/decide';
import { RequestGate } from '../../../../src/workers/worker/rules/request-gate';
import { request } from '../../../support/data/requests';

const OK: Verdict = { overallCode: Code.OK, statuses: [], responseHeaders: [], dynamicMetadata: undefined };

/** A gate around decisions that are recorded, and cancelled or answered by the test. */
function gated() {
  const gate = new RequestGate();
  const calls: string[] = [];
  const decided: DecisionObserver[] = [];
  const decide: Decide = ({ domain }, observer) => {
    calls.push(domain);
    decided.push(observer);
    return { cancel: (cause) => calls.push(`${domain} ${cause}`) };
  };
  const outcomes: string[] = [];
  function send(domain: string, decideNow = gate.guard(decide)) {
    return decideNow(request(domain, ['k=v']), {
      verdict: ({ overallCode }) => outcomes.push(`${domain} ${overallCode}`),
      error: (error: DecisionError) => outcomes.push(`${domain} ${error.code}`),
    });
  }
  return { gate, calls, decided, outcomes, send };
}

describe('the gate of requests', () => {
  it('passes requests on while it is open, with nothing in between', () => {
    const { calls, decided, outcomes, send } = gated();
    const pending = send('a');
    expect(calls).toEqual(['a']);
    decided[0]?.verdict(OK);
    expect(outcomes).toEqual([`a ${Code.OK}`]);
    pending.cancel('cancelled');
    expect(calls).toEqual(['a', 'a cancelled']);
  });

  it('parks requests while it is held, and decides them in order when it is released', () => {
    const { gate, calls, decided, outcomes, send } = gated();
    gate.hold();
    send('a');
    send('b');
    send('c');
    expect(calls).toEqual([]);
    gate.release();
    expect(calls).toEqual(['a', 'b', 'c']);
    decided[1]?.verdict(OK);
    expect(outcomes).toEqual([`b ${Code.OK}`]);
    send('d');
    expect(calls).toEqual(['a', 'b', 'c', 'd']);
  });

  it('puts a request that arrives while parked ones are decided behind them', () => {
    const gate = new RequestGate();
    const calls: string[] = [];
    const decide = gate.guard(({ domain }: RateLimitRequest, observer) => {
      calls.push(domain);
      if (domain === 'a') decide(request('late', ['k=v']), observer);
      return { cancel: () => undefined };
    });
    const ignore: DecisionObserver = { verdict: () => undefined, error: () => undefined };
    gate.hold();
    decide(request('a', ['k=v']), ignore);
    decide(request('b', ['k=v']), ignore);
    gate.release();
    expect(calls).toEqual(['a', 'b', 'late']);
  });

  it('forgets a parked request that is cancelled', () => {
    const { gate, calls, outcomes, send } = gated();
    gate.hold();
    const expired = send('a');
    send('b');
    expired.cancel('deadline_exceeded');
    gate.release();
    expect(calls).toEqual(['b']);
    expect(outcomes).toEqual([]);
  });

  it('cancels a decision that was parked before', () => {
    const { gate, calls, send } = gated();
    gate.hold();
    const pending = send('a');
    gate.release();
    pending.cancel('cancelled');
    expect(calls).toEqual(['a', 'a cancelled']);
  });

  it('rejects parked and further requests when it is closed while it is held', () => {
    const { gate, calls, outcomes, send } = gated();
    gate.hold();
    send('a');
    gate.close();
    send('b').cancel('cancelled');
    gate.release();
    expect(outcomes).toEqual(['a shutting_down', 'b shutting_down']);
    expect(calls).toEqual([]);
  });

  it('stays open when it is closed while no requests are held', () => {
    const { gate, calls, send } = gated();
    gate.close();
    send('a');
    expect(calls).toEqual(['a']);
  });
});
