import { status } from '@grpc/grpc-js';
import { runAdmin } from '../../src/cli/admin/run-admin';
import { explainError } from '../../src/cli/client/explain-error';
import { formatResponse } from '../../src/cli/client/format-response';
import { responseJson } from '../../src/cli/client/response-json';
import {
  type RateLimitResponse,
  RateLimitResponse_Code as Code,
  RateLimitResponse_RateLimit_Unit as Unit,
} from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { ApiStub } from './api-stub';

/** A title, a new line, and a command of 8-bit terminals. */
const HOSTILE = 'a\u001b]0;x\u0007\nb\u007f\u009b2J\tc';
const SHOWN = 'a\ufffd]0;x\ufffd\ufffdb\ufffd\ufffd2J\ufffdc';
// oxlint-disable-next-line no-control-regex -- the expression looks for control characters
const CONTROL = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/;

const COUNTER = {
  cacheKey: HOSTILE,
  count: 1,
  requestsPerUnit: 2,
  unit: 'HOUR',
  windowEnd: HOSTILE,
  timeToLive: null,
  isInLocalCache: false,
};
const RULE = {
  key: HOSTILE,
  value: HOSTILE,
  place: { file: HOSTILE, line: 1, column: 2 },
  limit: { requestsPerUnit: 1, unit: 'HOUR', name: HOSTILE },
  totals: null,
  descriptors: [],
};
const EXPLANATION = {
  answer: { overallCode: 'OK', reason: HOSTILE },
  error: null,
  descriptors: [
    {
      entries: [{ key: HOSTILE, value: HOSTILE }],
      steps: [{ key: HOSTILE, value: HOSTILE, candidates: [], otherValues: 0, keys: [HOSTILE], omitted: 0 }],
      reason: HOSTILE,
      status: null,
      counter: { requestsPerUnit: 1, unit: 'HOUR', resetAt: HOSTILE, cacheKey: HOSTILE, count: 0 },
      rule: { statisticsKey: HOSTILE, place: null },
      nearest: null,
    },
  ],
};
const DESCRIPTOR = ['-domain', 'd', '-descriptors', 'a=b'];

async function admin(answer: unknown, code: number, ...argv: readonly string[]) {
  await using api = await ApiStub.answering(answer, code);
  return await runAdmin([...argv, '-address', api.address], {});
}

describe('weir-admin prints no control characters of a server', () => {
  it.each([
    ['top', { offenders: [{ domain: 'd', rule: 'r', descriptor: HOSTILE, limited: 3, isShadow: false }] }, [], 1],
    ['rules', { loaded: null, rejected: null, domains: [{ domain: HOSTILE, descriptors: [RULE] }] }, [], 3],
    ['explain', EXPLANATION, DESCRIPTOR, 7],
    ['counter get', COUNTER, DESCRIPTOR, 4],
    ['health', { healthy: false, unhealthy: [HOSTILE] }, [], 1],
  ])('with %s', async (command, answer, flags, lines) => {
    const { stdout } = await admin(answer, 200, ...command.split(' '), ...flags);
    expect(stdout).toContain(SHOWN);
    expect(stdout).not.toMatch(CONTROL);
    expect(stdout.split('\n')).toHaveLength(lines + 1);
  });

  it('with -json, which escapes them', async () => {
    const { stdout } = await admin({ healthy: true, unhealthy: [HOSTILE] }, 200, 'health', '-json');
    expect(stdout).not.toMatch(CONTROL);
    expect(JSON.parse(stdout)).toEqual({ healthy: true, unhealthy: [HOSTILE] });
  });

  it('with an error', async () => {
    const { stderr } = await admin({ detail: HOSTILE }, 400, 'health');
    expect(stderr).toBe(`weir-admin: ${SHOWN}\n`);
  });
});

describe('weir-client prints no control characters of a server', () => {
  const response: RateLimitResponse = {
    overallCode: Code.OK,
    statuses: [
      {
        code: Code.OK,
        currentLimit: { name: HOSTILE, requestsPerUnit: 1, unit: Unit.HOUR },
        limitRemaining: 0,
        durationUntilReset: undefined,
      },
    ],
    responseHeadersToAdd: [{ key: HOSTILE, value: HOSTILE, rawValue: Buffer.alloc(0) }],
    requestHeadersToAdd: [],
    rawBody: Buffer.alloc(0),
    dynamicMetadata: { key: HOSTILE },
  };

  it('as text', () => {
    const text = formatResponse([], response);
    expect(text).not.toMatch(CONTROL);
    expect(text.split('\n')).toEqual([
      'OK',
      `  descriptor 1  OK  0 of 1 per hour left (${SHOWN})`,
      `response header ${SHOWN}: ${SHOWN}`,
      expect.stringMatching(/^metadata \{"key":"a/),
    ]);
  });

  it('as JSON, which escapes them', () => {
    const json = responseJson(response);
    expect(json).not.toMatch(CONTROL);
    expect(JSON.parse(json)).toMatchObject({ responseHeadersToAdd: [{ key: HOSTILE, value: HOSTILE }] });
  });

  it.each([
    [status.INTERNAL, HOSTILE, `a:1 responded with INTERNAL: ${SHOWN}`],
    [
      status.UNAVAILABLE,
      `No connection established. Last error: Error: Host: a. is not in the cert's altnames: DNS:b\u009b2J`,
      `cannot connect to a:1: the certificate of the server is not for a but for b\ufffd2J`,
    ],
  ])('with an error: %i', async (code, details, message) => {
    const call = { address: 'a:1', timeoutMs: 1, isTls: true, hasCertificate: false };
    const failed = { ...call, serverSpeaksTls: () => Promise.resolve(undefined) };
    expect(await explainError(failed, { code, details })).toBe(message);
  });
});
