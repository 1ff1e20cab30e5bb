import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import { type Authority, newAuthority } from '../support/data/certificates';
import { simpleResource } from '../support/data/rule-resources';
import { WeirProcess } from '../support/processes/weir-process';
import { AdsServer, SnapshotCache } from '../support/servers/ads-server';

const XDS = { CONFIG_TYPE: 'GRPC_XDS_SOTW' };

function publishing(...domains: readonly string[]): SnapshotCache {
  const cache = new SnapshotCache(true);
  cache.publish(
    '1',
    domains.map((domain) => simpleResource(domain, 5)),
  );
  return cache;
}

describe('the settings of the xDS client', () => {
  let authority: Authority;
  let folder: string;
  beforeAll(async () => {
    authority = newAuthority();
    folder = await mkdtemp(join(tmpdir(), 'weir-xds-settings-'));
  });
  afterAll(async () => {
    authority.dispose();
    await rm(folder, { recursive: true, force: true });
  });

  async function file(name: string, content: string): Promise<string> {
    const path = join(folder, name);
    await writeFile(path, content);
    return path;
  }

  it('define its TLS connection, its node and its headers', async () => {
    const server = authority.issue('xds.example');
    const client = authority.issue('weir');
    const pair = { cert_chain: Buffer.from(server.cert), private_key: Buffer.from(server.key) };
    await using ads = await AdsServer.start({
      cache: publishing('shop'),
      credentials: ServerCredentials.createSsl(Buffer.from(authority.ca), [pair], true),
    });
    await using weir = await WeirProcess.start({
      env: {
        ...XDS,
        CONFIG_GRPC_XDS_SERVER_URL: ads.address,
        CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
        CONFIG_GRPC_XDS_SERVER_TLS_CACERT: await file('ca.pem', authority.ca),
        CONFIG_GRPC_XDS_SERVER_TLS_SAN: 'xds.example',
        CONFIG_GRPC_XDS_CLIENT_TLS_CERT: await file('client.pem', client.cert),
        CONFIG_GRPC_XDS_CLIENT_TLS_KEY: await file('client.key', client.key),
        CONFIG_GRPC_XDS_NODE_ID: 'edge-7',
        CONFIG_GRPC_XDS_NODE_METADATA: 'zone=a,ring=2',
        CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: 'x-tenant:blue,x-path:a:b',
      },
    });
    expect(await weir.debug('/rlconfig')).toContain('shop.key: ');
    const { metadata } = await ads.nextStream();
    expect([metadata.get('x-tenant'), metadata.get('x-path')]).toEqual([['blue'], ['a:b']]);
    expect(ads.requests[0]?.node).toMatchObject({ id: 'edge-7', metadata: { zone: 'a', ring: '2' } });
  });

  it('define the largest message that it accepts', async () => {
    await using ads = await AdsServer.start({ cache: publishing('shop', 'x'.repeat(2_000)) });
    await using weir = await WeirProcess.start({
      env: { ...XDS, CONFIG_GRPC_XDS_SERVER_URL: ads.address, XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES: '1000' },
      awaitServing: false,
    });
    expect(await weir.line(/rules rejected/)).toContain('exceeds XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES (1000)');
    expect(weir.output).not.toMatch(/msg="?serving/);
  });

  it('define how the delays before it connects again grow', async () => {
    await using ads = await AdsServer.start();
    await using weir = await WeirProcess.start({
      env: {
        ...XDS,
        CONFIG_GRPC_XDS_SERVER_URL: ads.address,
        XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '10ms',
        XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '100',
        XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
        XDS_CLIENT_BACKOFF_JITTER: 'false',
      },
      awaitServing: false,
    });
    (await ads.nextStream()).end({ details: 'retried after the initial interval' });
    const second = await ads.nextStream();
    const failed = performance.now();
    second.end({ details: 'retried after the longest interval' });
    const third = await ads.nextStream();
    // A timer may fire a millisecond early.
    expect(performance.now() - failed).toBeGreaterThanOrEqual(499);
    // Without its maximum, this delay would be longer than the test waits for a stream.
    third.end({ details: 'retried after the longest interval again' });
    (await ads.nextStream()).send('1', [simpleResource('shop', 5)]);
    await weir.line(/msg="?serving/);
  });

  it('define the first delays after streams that failed and after streams that worked', async () => {
    await using ads = await AdsServer.start();
    await using weir = await WeirProcess.start({
      env: {
        ...XDS,
        CONFIG_GRPC_XDS_SERVER_URL: ads.address,
        CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL: '10ms',
        XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '10ms',
        XDS_CLIENT_BACKOFF_RANDOM_FACTOR: '0',
      },
      awaitServing: false,
    });
    // With the default delays of 10 s and 3 s, so many streams would take longer than the test may.
    for (let streams = 0; streams < 15; streams += 1) (await ads.nextStream()).end({ details: 'failed' });
    for (let streams = 0; streams < 50; streams += 1) {
      const stream = await ads.nextStream();
      await stream.nextRequest();
      stream.send('1', [simpleResource('shop', 5)]);
      await stream.nextRequest();
      stream.end();
    }
    expect(await weir.line(/msg="?serving/)).toBeDefined();
  });
});
