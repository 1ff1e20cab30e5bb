import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Certificate, selfSigned } from '../support/data/certificates';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';

const DAY = 24 * 60 * 60 * 1000;

let folder: string;
let rules: RuleFolder;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-expiry-'));
  rules = await RuleFolder.with({ 'shop.yaml': 'domain: shop' });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await rules[Symbol.asyncDispose]();
});

/** A certificate that is valid for 90 days, with this many left. */
function withDaysLeft(days: number): { readonly pair: Certificate; readonly until: number } {
  const until = Math.floor(Date.now() / 1000) * 1000 + days * DAY;
  return { pair: selfSigned(new Date(until - 90 * DAY), new Date(until)), until };
}

function write({ cert, key }: Certificate): void {
  writeFileSync(join(folder, 'tls.crt'), cert);
  writeFileSync(join(folder, 'tls.key'), key);
}

function start(): Promise<WeirProcess> {
  return WeirProcess.start({
    env: {
      ...rules.env,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: join(folder, 'tls.crt'),
      GRPC_SERVER_TLS_KEY: join(folder, 'tls.key'),
    },
  });
}

function warningsIn({ output }: WeirProcess): readonly string[] {
  return output.split('\n').filter((line) => line.includes('the certificate of the gRPC listener'));
}

async function expiresAt(weir: WeirProcess): Promise<number | undefined> {
  return (await weir.statistics()).get('certs.expires_at');
}

describe('the expiry of the certificate of the gRPC listener', () => {
  it('is a statistic, and is warned of within 30 days, again after a reload', async () => {
    const first = withDaysLeft(29.5);
    write(first.pair);
    await using weir = await start();
    expect(await expiresAt(weir)).toBe(first.until / 1000);
    expect(warningsIn(weir)).toEqual([
      expect.stringMatching(/level=warning.*the certificate of the gRPC listener expires in 29 days" expires="?20/),
    ]);
    const second = withDaysLeft(1.5);
    write(second.pair);
    await weir.line(/the certificate of the gRPC listener expires in 1 day"/);
    expect(await expiresAt(weir)).toBe(second.until / 1000);
    const third = withDaysLeft(90);
    write(third.pair);
    await weir.until('the third certificate', async () => (await expiresAt(weir)) === third.until / 1000);
    expect(warningsIn(weir).map((line) => /msg="([^"]*)"/.exec(line)?.[1])).toEqual([
      'the certificate of the gRPC listener expires in 29 days',
      'the certificate of the gRPC listener was replaced',
      'the certificate of the gRPC listener expires in 1 day',
      'the certificate of the gRPC listener was replaced',
    ]);
  });

  it('is not warned of before', async () => {
    const { pair, until } = withDaysLeft(31);
    write(pair);
    await using weir = await start();
    expect(await expiresAt(weir)).toBe(until / 1000);
    expect(warningsIn(weir)).toEqual([]);
  });

  it('is said to be past when it is', async () => {
    write(withDaysLeft(-1).pair);
    await using weir = await start();
    expect(warningsIn(weir)).toEqual([expect.stringContaining('has expired')]);
  });

  it('is 0 without TLS', async () => {
    await using weir = await WeirProcess.start({ env: rules.env });
    expect(await expiresAt(weir)).toBe(0);
  });
});
