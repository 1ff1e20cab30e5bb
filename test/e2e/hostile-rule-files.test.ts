import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { RateLimitResponse_Code as Code } from '../../src/gen/envoy/service/ratelimit/v3/rls';
import { RateLimitClient } from '../support/clients/grpc-client';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const BANNED = 'domain: shop\ndescriptors: [{ key: banned, rate_limit: { unit: day, requests_per_unit: 0 } }]\n';
const MIB = 1024 * 1024;

/** Lists in lists of ten, which aliases multiply to 10^12 values. */
function multiplyingAliases(): string {
  let text = 'domain: bomb\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n';
  for (let level = 1; level < 12; level += 1) {
    const aliases = Array.from({ length: 10 }, () => `*a${level - 1}`);
    text += `a${level}: &a${level} [${aliases.join(', ')}]\n`;
  }
  return text;
}

let rules: RuleFolder;
let weir: WeirProcess;
let client: RateLimitClient;
beforeAll(async () => {
  rules = await RuleFolder.with({ 'shop.yaml': BANNED });
  weir = await WeirProcess.start({ env: rules.env });
  client = new RateLimitClient(weir.grpcAddress);
});
afterAll(async () => {
  client[Symbol.dispose]();
  await weir[Symbol.asyncDispose]();
  await rules[Symbol.asyncDispose]();
});

/** Calls until the condition holds; each call has to be decided by the rules that were active before. */
async function callUntil(isDone: () => boolean): Promise<void> {
  let calls = 0;
  await weir.until('the outcome of a load', async () => {
    const { overallCode } = await client.shouldRateLimit('shop', ['banned=x']);
    expect(overallCode).toBe(Code.OVER_LIMIT);
    calls += 1;
    return isDone();
  });
  expect(calls).toBeGreaterThan(0);
}

describe('the service, while its rule folder has a file', () => {
  it.each<[what: string, content: () => string, bytes: number | undefined, reason: string]>([
    ['of 1.9 GB', () => '', 1.9e9, 'huge.yaml:1:1: error loading config file: the file has 1900000000 bytes'],
    ['of blanks', () => ' '.repeat(8 * MIB), undefined, 'huge.yaml:1:1: config file cannot have empty domain'],
    [
      'of comments',
      () => '# nothing\n'.repeat(MIB / 10),
      undefined,
      'huge.yaml:1:1: config file cannot have empty domain',
    ],
    ['with one line', () => 'x'.repeat(8 * MIB), undefined, 'huge.yaml:1:1: error loading config file: the top level'],
    ['of opening brackets', () => '['.repeat(8 * MIB), undefined, 'are nested more than 200 levels deep'],
    ['of opening braces', () => '{'.repeat(8 * MIB), undefined, 'are nested more than 200 levels deep'],
    ['with aliases that multiply', multiplyingAliases, undefined, 'document contains excessive aliasing'],
  ])('%s, rejects it, keeps its rules and answers calls', async (_, content, bytes, reason) => {
    const lines = weir.output.length;
    await rules.write('huge.tmp', content());
    if (bytes !== undefined) truncateSync(join(rules.root, 'config/huge.tmp'), bytes);
    await rules.rename('huge.tmp', 'huge.yaml');
    await callUntil(() => weir.output.slice(lines).includes('new rules rejected; keeping the active rules'));
    expect(weir.output.slice(lines)).toContain(reason);
    await rules.remove('huge.yaml');
    await callUntil(() => /rules are valid again|rules loaded/.test(weir.output.slice(lines)));
  });
});
