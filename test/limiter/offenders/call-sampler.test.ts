import { CallSampler } from '../../../src/limiter/offenders/call-sampler';

function weights(sampler: CallSampler, calls: number, at: number): readonly number[] {
  return Array.from({ length: calls }, () => sampler.weightAt(at));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

describe('the sampled calls', () => {
  it('are all of the first 1,000 calls of each second', () => {
    const sampler = new CallSampler();
    expect(sum(weights(sampler, 1000, 5))).toBe(1000);
    expect(weights(sampler, 1000, 5).filter((weight) => weight > 0).length).toBeLessThan(100);
    expect(weights(sampler, 1000, 6)).toEqual(Array.from({ length: 1000 }, () => 1));
  });

  it('stand for all calls of a second', () => {
    const total = sum(weights(new CallSampler(), 1_000_000, 0));
    expect(total / 1_000_000).toBeGreaterThan(0.98);
    expect(total / 1_000_000).toBeLessThan(1.02);
  });

  it('represent callers that take turns evenly', () => {
    const all = weights(new CallSampler(), 1_600_000, 0);
    for (let turn = 0; turn < 16; turn += 1) {
      const share = sum(all.filter((_, index) => index % 16 === turn)) / 100_000;
      expect(share).toBeGreaterThan(0.9);
      expect(share).toBeLessThan(1.1);
    }
  });

  it('are not all again when a store answers late', () => {
    const sampler = new CallSampler();
    weights(sampler, 1000, 10);
    expect(weights(sampler, 1000, 9).filter((weight) => weight > 0).length).toBeLessThan(100);
  });

  it('are all again after the clock was set back', () => {
    const sampler = new CallSampler();
    weights(sampler, 2000, 100_000);
    expect(sum(weights(sampler, 1000, 5))).toBe(1000);
    expect(weights(sampler, 1000, 5)).toContain(0);
  });
});
