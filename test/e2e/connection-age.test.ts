import { setTimeout as wait } from 'node:timers/promises';
import { HealthCheckRequest } from '../../src/gen/grpc/health/v1/health';
import { SHOULD_RATE_LIMIT } from '../../src/grpc/rate-limit/rate-limit-service';
import { RateLimitClient, requestMessage } from '../support/clients/grpc-client';
import { Http2Connection } from '../support/clients/http2-connection';
import { RuleFolder } from '../support/data/rule-folder';
import { WeirProcess } from '../support/processes/weir-process';
import { FaultProxy } from '../support/servers/fault-proxy';

const RULES = {
  'shop.yaml': 'domain: shop\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 100000}}]\n',
};
/** In milliseconds. */
const AGE = 400;
const GRACE = 300;
const EARLIEST = AGE * 0.9;
const WATCH = '/grpc.health.v1.Health/Watch';
const UNAVAILABLE = 14;

let rules: RuleFolder;
/** A call stays in flight, because its pipeline window does not close. */
let withGrace: WeirProcess;
let withDefaultGrace: WeirProcess;
beforeAll(async () => {
  rules = await RuleFolder.with(RULES);
  const env = { ...rules.env, GRPC_MAX_CONNECTION_AGE: `${AGE}ms`, KVSTORE_PIPELINE_WINDOW: '10m' };
  [withGrace, withDefaultGrace] = await Promise.all([
    WeirProcess.start({ env: { ...env, GRPC_MAX_CONNECTION_AGE_GRACE: `${GRACE}ms` } }),
    WeirProcess.start({ env }),
  ]);
});
afterAll(async () => {
  await withGrace[Symbol.asyncDispose]();
  await withDefaultGrace[Symbol.asyncDispose]();
  await rules[Symbol.asyncDispose]();
});

function callInFlight(connection: Http2Connection) {
  return connection.call(SHOULD_RATE_LIMIT, requestMessage('shop', ['user=a']));
}

describe('GRPC_MAX_CONNECTION_AGE', () => {
  it('is the age, at least 90 % of it, at which each connection gets a GOAWAY and is closed', async () => {
    using first = new Http2Connection(withDefaultGrace.grpcAddress);
    await wait(AGE / 2);
    using younger = new Http2Connection(withDefaultGrace.grpcAddress);
    for (const connection of [first, younger]) {
      expect((await connection.goneAway) - connection.begun).toBeGreaterThanOrEqual(EARLIEST);
      await connection.closed;
      expect(connection.events).toEqual(['GOAWAY 0 max_age', 'closed']);
    }
  });

  it('ends a health Watch with UNAVAILABLE, so that its client watches on another connection', async () => {
    using connection = new Http2Connection(withDefaultGrace.grpcAddress);
    const { status } = connection.call(WATCH, HealthCheckRequest.encode({ service: '' }).finish());
    expect(await status).toBe(UNAVAILABLE);
    await connection.closed;
    expect(connection.events).toEqual(['GOAWAY 0 max_age', `Watch ended with ${UNAVAILABLE}`, 'closed']);
  });

  it('fails no call of a client that reconnects', async () => {
    await using weir = await WeirProcess.start({ env: { ...rules.env, GRPC_MAX_CONNECTION_AGE: '100ms' } });
    await using proxy = await FaultProxy.start(() => ({ port: weir.ports.grpc }));
    using client = new RateLimitClient(proxy.address);
    const reconnected = weir.until('the client to reconnect several times', async () => {
      await client.shouldRateLimit('shop', ['user=a']);
      return proxy.accepted >= 4;
    });
    await expect(reconnected).resolves.toBe(true);
  });
});

describe('GRPC_MAX_CONNECTION_AGE_GRACE', () => {
  it('is the time after the GOAWAY at which a connection is cut although a call is in flight', async () => {
    using connection = new Http2Connection(withGrace.grpcAddress);
    const { status } = callInFlight(connection);
    await connection.goneAway;
    expect(await status).toBeNaN();
    expect((await connection.closed) - connection.begun).toBeGreaterThanOrEqual(EARLIEST + GRACE);
    expect(connection.events[0]).toBe('GOAWAY 0 max_age');
  });

  it('is long by default: a connection with a call in flight stays open after its GOAWAY', async () => {
    using connection = new Http2Connection(withDefaultGrace.grpcAddress);
    const { stream } = callInFlight(connection);
    await connection.goneAway;
    using later = new Http2Connection(withDefaultGrace.grpcAddress);
    await later.closed;
    expect([connection.events, stream.closed]).toEqual([['GOAWAY 0 max_age'], false]);
  });
});
