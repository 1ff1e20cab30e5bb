#!/usr/bin/env node
// A small xDS management server for trying out weir: serves the rule files of a folder to every client, and again when
// one changes.
//
//   node examples/xds/control-plane.mjs [folder] [port]
//
// It prints the reaction of each client: ACK with the accepted version, or NACK with the reason.
import { readFileSync, readdirSync, watch } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { parse } from 'yaml';

const require = createRequire(import.meta.url);
const { DiscoveryRequest, DiscoveryResponse } = require('../../dist/gen/envoy/service/discovery/v3/discovery.js');
const { RateLimitConfig, RateLimitUnit } = require('../../dist/gen/ratelimit/config/ratelimit/v3/rls_conf.js');

const TYPE_URL = 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';
const [folder = join(import.meta.dirname, '..', 'config'), port = '18000'] = process.argv.slice(2);
/** The fields of rule files that the resource does not have. */
const FILE_FIELDS = ['share_threshold', 'value_to_metric'];
const MAX_UINT32 = 4_294_967_295;
const clients = new Set();
let version = 0;
let resources = [];

/** A rule of a file as a protobuf message. */
function descriptor({ key = '', value = '', rate_limit: limit, descriptors = [], ...rest }) {
  return {
    key: String(key),
    value: String(value),
    valueIn: (rest.value_in ?? []).map(String),
    valueCidr: rest.value_cidr ?? '',
    valueRegex: rest.value_regex ?? '',
    rateLimit: limit && policy(limit),
    rateLimits: (rest.rate_limits ?? []).map(policy),
    allOrNothing: rest.all_or_nothing ?? false,
    descriptors: descriptors.map(descriptor),
    shadowMode: rest.shadow_mode ?? false,
    detailedMetric: rest.detailed_metric ?? false,
    quotaMode: rest.quota_mode ?? false,
    enforcePercent: rest.enforce_percent,
    addressPrefix: rest.address_prefix && { ipv4: 0, ipv6: 0, ...rest.address_prefix },
    metadata: rest.metadata,
  };
}

function policy(limit) {
  return {
    unit: RateLimitUnit[String(limit.unit).toUpperCase()] ?? RateLimitUnit.UNKNOWN,
    unitMultiplier: limit.unit_multiplier ?? 0,
    calendar: limit.calendar && {
      timeZone: limit.calendar.time_zone ?? '',
      startsOn: String(limit.calendar.starts_on ?? ''),
    },
    requestsPerUnit: Math.min(limit.requests_per_unit ?? 0, MAX_UINT32),
    largeRequestsPerUnit: BigInt(limit.requests_per_unit > MAX_UINT32 ? limit.requests_per_unit : 0),
    postpaid: limit.postpaid ?? false,
    maxConcurrent: limit.max_concurrent,
    algorithm: limit.algorithm ?? '',
    burst: limit.burst ?? 0,
    lease: limit.lease,
    active: limit.active && {
      timeZone: limit.active.time_zone ?? '',
      ranges: (limit.active.ranges ?? []).map(({ days = [], from = '', to = '' }) => ({ days, from, to })),
    },
    blockFor: limit.block_for && block(limit.block_for),
    unlimited: limit.unlimited ?? false,
    name: limit.name ?? '',
    replaces: limit.replaces ?? [],
  };
}

function block(written) {
  const { first = written, factor = 0, most, forgotten_after: forgottenAfter } = written;
  return { first: duration(first), factor, most: duration(most), forgottenAfter: duration(forgottenAfter) };
}

/** Of a text such as `1h30m`. */
function duration(text) {
  if (text === undefined) return undefined;
  const parts = String(text).matchAll(/(\d+)([hms])/g);
  const seconds = [...parts].reduce((sum, [, count, unit]) => sum + count * { h: 3_600, m: 60, s: 1 }[unit], 0);
  return { seconds: BigInt(seconds), nanos: 0 };
}

/** Whether any of the rules, or those nested in them, has the field. */
function isUsed(field, descriptors) {
  return descriptors.some((rule) => rule[field] === true || isUsed(field, rule.descriptors ?? []));
}

function resource(name) {
  const { domain = '', descriptors = [], ...rest } = parse(readFileSync(join(folder, name), 'utf8')) ?? {};
  const config = {
    name,
    domain,
    descriptors: descriptors.map(descriptor),
    defaultRateLimit: rest.default_rate_limit && policy(rest.default_rate_limit),
    onUnmatched: rest.on_unmatched ?? '',
  };
  for (const field of FILE_FIELDS.filter((each) => isUsed(each, descriptors))) {
    console.log(`${name}: ${field} is left out, because xDS resources do not have it`);
  }
  return { typeUrl: TYPE_URL, value: Buffer.from(RateLimitConfig.encode(config).finish()) };
}

function publish() {
  try {
    resources = readdirSync(folder)
      .filter((name) => /^[^.].*\.ya?ml$/.test(name))
      .map(resource);
  } catch (error) {
    console.log(`not published: ${error.message}`);
    return;
  }
  version += 1;
  console.log(`version ${version}: ${resources.length} resources`);
  for (const client of clients) client.offer();
}

function serve(call) {
  const client = {
    name: '?',
    nonce: 0,
    /** The version sent last. */
    sent: undefined,
    /** Sends the published version, unless this client already has it. */
    offer() {
      if (this.name === '?' || this.sent === version) return;
      this.sent = version;
      this.nonce += 1;
      const nonce = String(this.nonce);
      call.write({ versionInfo: String(version), resources, canary: false, typeUrl: TYPE_URL, nonce });
    },
  };
  clients.add(client);
  call.on('data', ({ node, versionInfo, responseNonce, errorDetail }) => {
    client.name = node?.id ?? '';
    if (errorDetail !== undefined) {
      console.log(`NACK by ${client.name}, which stays at version ${versionInfo || 'none'}:\n  ${errorDetail.message}`);
    } else if (responseNonce === '') {
      console.log(`${client.name} connected, with ${versionInfo === '' ? 'no rules' : `version ${versionInfo}`}`);
    } else {
      console.log(`ACK by ${client.name}: version ${versionInfo}`);
    }
    client.offer();
  });
  call.on('error', () => undefined);
  call.on('cancelled', () => {
    clients.delete(client);
    console.log(`${client.name} disconnected`);
  });
}

const server = new Server();
server.addService(
  {
    streamAggregatedResources: {
      path: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
      requestStream: true,
      responseStream: true,
      requestSerialize: (message) => Buffer.from(DiscoveryRequest.encode(message).finish()),
      requestDeserialize: (bytes) => DiscoveryRequest.decode(bytes),
      responseSerialize: (message) => Buffer.from(DiscoveryResponse.encode(message).finish()),
      responseDeserialize: (bytes) => DiscoveryResponse.decode(bytes),
    },
  },
  { streamAggregatedResources: serve },
);
server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) => {
  if (error !== null) throw error;
  console.log(`listening on 127.0.0.1:${bound}, serving ${folder}`);
  publish();
  let soon;
  watch(folder, () => {
    clearTimeout(soon);
    soon = setTimeout(publish, 100);
  });
});
