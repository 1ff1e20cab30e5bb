import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { firstValueFrom } from 'rxjs';
import { PrimaryTls } from '../../src/main/primary-tls';
import { readSettings } from '../../src/settings/read-settings';
import { MAX_CERTIFICATE_BYTES } from '../../src/sources/certificates/read-certificates';
import { Statistics } from '../../src/statistics/statistics';
import { sendJson } from '../../src/workers/channel/json-frames';
import { StreamChannel } from '../../src/workers/channel/stream-channel';
import { TOPICS } from '../../src/workers/channel/topics';
import { WorkerPool } from '../../src/workers/primary/worker-pool';
import { PrimaryLink } from '../../src/workers/worker/primary-link';
import { type Authority, newAuthority } from '../support/data/certificates';
import { RecordedLog } from '../support/data/recorded-log';
import { duplexPair } from '../support/workers/channel-pair';

let authority: Authority;
let folder: string;
beforeAll(async () => {
  authority = newAuthority();
  folder = await mkdtemp(join(tmpdir(), 'weir-primary-tls-'));
});
afterAll(async () => {
  authority.dispose();
  await rm(folder, { recursive: true });
});

/** Fails when it should start a worker. */
function emptyPool(log: RecordedLog): WorkerPool {
  return new WorkerPool({
    count: 2,
    fork: () => {
      throw new Error('no worker is to be started');
    },
    log,
  });
}

describe('the certificates for workers', () => {
  it('arrive in one frame when they are as large as is accepted, whatever their characters', async () => {
    const { cert, key } = authority.issue('localhost');
    const certFile = join(folder, 'cert.pem');
    const keyFile = join(folder, 'key.pem');
    const caFile = join(folder, 'ca.pem');
    const padding = MAX_CERTIFICATE_BYTES - cert.length - key.length - authority.ca.length;
    // Each of these characters takes six bytes in JSON.
    const clientCa = authority.ca + '\u0001'.repeat(padding);
    await Promise.all([writeFile(certFile, cert), writeFile(keyFile, key), writeFile(caFile, clientCa)]);
    const reading = readSettings({
      BACKEND_TYPE: 'memory',
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: certFile,
      GRPC_SERVER_TLS_KEY: keyFile,
      GRPC_CLIENT_TLS_CACERT: caFile,
      GRPC_CLIENT_TLS_SAN: '\u0001'.repeat(100_000),
    });
    const log = new RecordedLog();
    const tls = new PrimaryTls(reading, { pool: emptyPool(log), statistics: new Statistics(1000), log });
    const [primaryEnd, workerEnd] = duplexPair();
    try {
      await tls.open();
      const link = new PrimaryLink(workerEnd);
      link.start();
      sendJson(new StreamChannel(primaryEnd), TOPICS.control, tls.order!);
      const received = await firstValueFrom(link.tls$);
      const texts = [received.cert, received.key, received.clientCa!];
      expect(texts.map((text) => Buffer.from(text, 'base64').toString())).toEqual([cert, key, clientCa]);
    } finally {
      tls.close();
      primaryEnd.destroy();
    }
  });
});
