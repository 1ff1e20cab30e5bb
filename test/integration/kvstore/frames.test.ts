import { Socket } from 'node:net';
import type { KvstoreCounters } from '../../../src/sinks/counters/kvstore/kvstore-counters';
import { LaneClient } from '../../support/clients/lane-client';
import { RedisCluster } from '../../support/processes/redis/redis-cluster';
import { RedisProcess } from '../../support/processes/redis/redis-process';
import { operation } from '../counters/scenarios';
import { connected, instance } from './options';

/** The functions on the stack at the first write to a socket that mentions a text, the last called first. */
async function stackAtWrite(text: string, act: () => Promise<unknown>): Promise<readonly string[]> {
  const depth = Error.stackTraceLimit;
  Error.stackTraceLimit = 200;
  let stack: string | undefined;
  const write = Reflect.get(Socket.prototype, 'write') as (...all: unknown[]) => boolean;
  const spy = jest.spyOn(Socket.prototype, 'write').mockImplementation(function written(
    this: Socket,
    ...args: unknown[]
  ) {
    if (String(args[0]).includes(text)) stack ??= new Error('written').stack;
    return write.apply(this, args);
  });
  try {
    await act();
  } finally {
    spy.mockRestore();
    Error.stackTraceLimit = depth;
  }
  return stack!.split('\n').slice(1);
}

/** From the window that is due to the write of its commands: our frames and their files, and those of RxJS. */
async function framesOf(counters: KvstoreCounters) {
  using client = new LaneClient(counters);
  function count() {
    return client.call([operation('{x}frames', 1), operation('{x}more', 1)]);
  }
  // A counter that is known to have an expiry is added to with plain commands, as most are.
  for (let call = 0; call < 3; call += 1) await count();
  const stack = await stackAtWrite('frames', count);
  const due = stack.findIndex((frame) => frame.includes('due'));
  const frames = stack.slice(0, due + 1);
  const own = frames.filter((frame) => /[\\/]src[\\/](?!internal)/.test(frame) && !frame.includes('node_modules'));
  const files = new Set(own.map((frame) => /([\w-]+\.ts):/.exec(frame)?.[1]));
  return { own, files: [...files], rxjs: frames.filter((frame) => frame.includes('rxjs')) };
}

it.each(['a single server', 'a node of a cluster'])(
  'a window is at most 9 frames of 5 files away from the socket of %s, 14 with those of RxJS',
  async (kind) => {
    await using servers = kind === 'a single server' ? await RedisProcess.start() : await RedisCluster.start();
    const main =
      servers instanceof RedisCluster ? instance(servers.url, { type: 'cluster' }) : instance(servers.address);
    const { own, files, rxjs } = await framesOf(await connected(main));
    expect(own.at(-1)).toContain('due');
    expect(own[0]).toContain('sendPipeline');
    expect(own.length).toBeLessThanOrEqual(9);
    expect(files.length).toBeLessThanOrEqual(5);
    expect(own.length + rxjs.length).toBeLessThanOrEqual(14);
  },
);
