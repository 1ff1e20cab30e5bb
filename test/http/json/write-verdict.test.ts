import { writeVerdict } from '../../../src/http/json/write-verdict';
import { Code, type DescriptorStatus, type Verdict } from '../../../src/limiter/verdict';
import { unitByName } from '../../../src/rules/unit';

const MINUTE = unitByName('MINUTE')!;
const NO_LIMIT: DescriptorStatus = {
  code: Code.OK,
  currentLimit: undefined,
  limitRemaining: 0,
  secondsUntilReset: undefined,
};

function written(verdict: Partial<Verdict>): unknown {
  return JSON.parse(
    writeVerdict({ overallCode: Code.OK, statuses: [], responseHeaders: [], dynamicMetadata: undefined, ...verdict }),
  );
}

describe('a verdict in proto3 JSON', () => {
  it('has the limit, what remains of it and the time until its reset', () => {
    const currentLimit = { requestsPerUnit: 10, unit: MINUTE, name: 'ten "a" minute' };
    const status = { code: Code.OK, currentLimit, limitRemaining: 9, secondsUntilReset: 30 };
    expect(written({ statuses: [status] })).toEqual({
      overallCode: 'OK',
      statuses: [
        {
          code: 'OK',
          currentLimit: { requestsPerUnit: 10, unit: 'MINUTE', name: 'ten "a" minute' },
          limitRemaining: 9,
          durationUntilReset: '30s',
        },
      ],
    });
  });

  it('leaves out fields with default values', () => {
    const currentLimit = { requestsPerUnit: 0, unit: MINUTE, name: '' };
    const over = { code: Code.OVER_LIMIT, currentLimit, limitRemaining: 0, secondsUntilReset: 0 };
    expect(written({ overallCode: Code.OVER_LIMIT, statuses: [over, NO_LIMIT] })).toEqual({
      overallCode: 'OVER_LIMIT',
      statuses: [{ code: 'OVER_LIMIT', currentLimit: { unit: 'MINUTE' }, durationUntilReset: '0s' }, { code: 'OK' }],
    });
  });

  it('has the remaining limit of an unlimited rule', () => {
    expect(written({ statuses: [{ ...NO_LIMIT, limitRemaining: 4294967295 }] })).toEqual({
      overallCode: 'OK',
      statuses: [{ code: 'OK', limitRemaining: 4294967295 }],
    });
  });

  it('has response headers and dynamic metadata', () => {
    const responseHeaders = [
      { key: 'RateLimit-Limit', value: '10' },
      { key: 'X', value: '' },
    ];
    const dynamicMetadata = { domain: 'd', descriptors: [{ entries: ['a=b'] }], ratio: 0.5, none: null };
    expect(written({ responseHeaders, dynamicMetadata })).toEqual({
      overallCode: 'OK',
      responseHeadersToAdd: [{ key: 'RateLimit-Limit', value: '10' }, { key: 'X' }],
      dynamicMetadata,
    });
  });
});
