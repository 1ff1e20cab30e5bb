import { type Parent, type SamplingDecision, readParent } from '../../../src/sinks/traces/parent';

const T = '0af7651916cd43dd8448eb211c80319c';
const S = 'b7ad6b7169203331';

function parentIn(fields: Readonly<Record<string, string>>) {
  return readParent({ metadata: (name) => fields[name] });
}
function parent(isSampled: boolean | undefined, more: Partial<Parent> = {}): Parent {
  return {
    traceId: T,
    spanId: S,
    isSampled,
    state: undefined,
    ...more,
  };
}

describe('readParent', () => {
  it.each<[title: string, fields: Readonly<Record<string, string>>, found: Parent | SamplingDecision | undefined]>([
    ['W3C, sampled', { traceparent: `00-${T}-${S}-01` }, parent(true)],
    ['W3C, not sampled', { traceparent: `00-${T}-${S}-00` }, parent(false)],
    ['W3C, other flags', { traceparent: `00-${T}-${S}-ff` }, parent(true)],
    ['W3C with a state', { traceparent: `00-${T}-${S}-01`, tracestate: 'a=1,b=2' }, parent(true, { state: 'a=1,b=2' })],
    ['W3C of a later version', { traceparent: `cc-${T}-${S}-01-what-the-future` }, parent(true)],
    ['W3C of version ff', { traceparent: `ff-${T}-${S}-01` }, undefined],
    ['W3C with more than version 00 has', { traceparent: `00-${T}-${S}-01-more` }, undefined],
    ['W3C in upper case', { traceparent: `00-${T.toUpperCase()}-${S}-01` }, undefined],
    ['W3C with a trace of zeros', { traceparent: `00-${'0'.repeat(32)}-${S}-01` }, undefined],
    ['W3C with a span of zeros', { traceparent: `00-${T}-${'0'.repeat(16)}-01` }, undefined],
    ['W3C that is truncated', { traceparent: `00-${T}-${S}` }, undefined],
    ['B3 in a single header', { b3: `${T}-${S}-1` }, parent(true)],
    ['B3 in a single header with a parent span', { b3: `${T}-${S}-0-05e3ac9a4f6e3b90` }, parent(false)],
    ['B3 in a single header, debug', { b3: `${T}-${S}-d` }, parent(true)],
    ['B3 in a single header without a sampling decision', { b3: `${T}-${S}` }, parent(undefined)],
    ['B3 in a single header with only a sampling decision', { b3: '0' }, { isSampled: false }],
    ['B3 in a single header that is invalid', { b3: 'perhaps' }, undefined],
    ['B3 of 64 bits', { b3: `${S}-${S}-1` }, parent(true, { traceId: '0'.repeat(16) + S })],
    [
      'B3 in multiple headers',
      { 'x-b3-traceid': T.toUpperCase(), 'x-b3-spanid': S, 'x-b3-sampled': '1' },
      parent(true),
    ],
    [
      'B3 in multiple headers, not sampled',
      { 'x-b3-traceid': T, 'x-b3-spanid': S, 'x-b3-sampled': '0' },
      parent(false),
    ],
    [
      'B3 in multiple headers, as a word',
      { 'x-b3-traceid': T, 'x-b3-spanid': S, 'x-b3-sampled': 'False' },
      parent(false),
    ],
    ['B3 in multiple headers, debug', { 'x-b3-traceid': T, 'x-b3-spanid': S, 'x-b3-flags': '1' }, parent(true)],
    ['B3 in multiple headers without a sampling decision', { 'x-b3-traceid': T, 'x-b3-spanid': S }, parent(undefined)],
    ['B3 in multiple headers with only a sampling decision', { 'x-b3-sampled': '0' }, { isSampled: false }],
    ['B3 in multiple headers with a broken id', { 'x-b3-traceid': 'x', 'x-b3-spanid': S }, undefined],
    ['W3C in preference to B3', { traceparent: `00-${T}-${S}-00`, b3: `${T}-${S}-1` }, parent(false)],
    ['B3 when W3C is invalid', { traceparent: 'x', b3: `${T}-${S}-1` }, parent(true)],
    ['no headers', {}, undefined],
  ])('reads %s', (_, fields, found) => {
    expect(parentIn(fields)).toEqual(found);
  });

  it('returns undefined when the transport has no metadata', () => {
    expect(readParent({})).toBeUndefined();
  });
});
