import { HeaderBlockReader } from '../../../src/grpc/http2/headers/header-blocks';
import { DEFAULT_LIMITS } from '../../../src/grpc/http2/limits/limits';

import { endedOf, get, goawaysOf, hello, ping } from './frames';
import { MemoryPeer } from './memory-peer';
import { RandomFrames } from './random-frames';
import { type RawClient, connectPlain } from './raw-client';
import { seededRandom } from './seeded-random';
import { startServer } from './start-server';
import { TestApplication } from './test-application';

jest.setTimeout(24 * 3_600_000);

/** `bench/conformance/fuzz.mjs` runs more, with another seed. */
const SEQUENCES = Number(process.env['WEIR_FUZZ_SEQUENCES'] ?? 50_000);
const SOCKET_SEQUENCES = Math.min(SEQUENCES / 100, 1_000);
const SEED = process.env['WEIR_SEED'] ?? 'fuzz';
/** Higher than any stream of a random sequence except the highest possible one. */
const LATER_STREAM = 1_001;
/** Milliseconds between two checks whether the process is busy. */
const TICK = 50;

describe(`random and damaged frames with seed ${SEED}`, () => {
  it(`cause no internal error, no hang and no leak on ${SEQUENCES} connections`, () => {
    const frames = new RandomFrames(seededRandom(SEED));
    const headerBlocks = new HeaderBlockReader(new TestApplication(), DEFAULT_LIMITS);
    let alive = 0;
    let ended = 0;
    for (let number = 0; number < SEQUENCES; number += 1) {
      const bytes = frames.sequence();
      // In a busy process, work waits until the process is idle again.
      const isBusy = number % 4 === 0;
      const peer = new MemoryPeer(isBusy ? { pacedStreams: 1 } : {}, new TestApplication(), { headerBlocks });
      peer.isBusy = isBusy;
      if (isBusy) peer.wait(TICK);
      for (const chunk of frames.cut(bytes)) peer.send(chunk);
      peer.isBusy = false;
      if (isBusy) peer.wait(4 * TICK);
      if (frames.below(4) === 0) peer.wait(100);
      const description = `connection ${number} of seed ${SEED}: ${bytes.toString('base64')}`;

      if (peer.internalErrors.length > 0) throw new Error(description, { cause: peer.internalErrors[0] });
      if (peer.connection.hasEnded) {
        ended += 1;
        if (!peer.transport.isDestroyed && goawaysOf(peer.frames).length === 0)
          throw new Error(`ended without GOAWAY: ${description}`);
      } else {
        peer.send(ping('alive?!!')).send(get(LATER_STREAM, '/hold'));
        const { held } = peer.application;
        const later = held.find(({ id }) => id === LATER_STREAM);
        if (later !== undefined) {
          alive += 1;
          peer.application.finish(later, '');
          peer.endTurns();
          if (!endedOf(peer.frames).includes(LATER_STREAM)) throw new Error(`not answered: ${description}`);
        }
      }
      peer.connection.transportClosed();
      if (peer.context.heldBytes.total !== 0) throw new Error(`memory kept: ${description}`);
    }

    // Both valid and invalid sequences must occur.
    expect(alive).toBeGreaterThan(SEQUENCES / 20);
    expect(ended).toBeGreaterThan(SEQUENCES / 20);
  });

  it(`do not affect another client, on ${SOCKET_SEQUENCES} connections over sockets`, async () => {
    const frames = new RandomFrames(seededRandom(`${SEED} over sockets`));
    const internalErrors: unknown[] = [];
    const server = await startServer({
      at: { host: '127.0.0.1', port: 0 },
      limits: { lingerMs: 50 },
      application: new TestApplication(),
      onInternalError: (error) => internalErrors.push(error),
    });
    const good = connectPlain(server.address).send(hello());
    try {
      for (let round = 0; round < SOCKET_SEQUENCES; round += 10) {
        const clients = Array.from({ length: 10 }, () => {
          const client: RawClient = connectPlain(server.address);
          for (const chunk of frames.cut(frames.sequence())) client.send(chunk);
          return client;
        });
        const id = (round / 10) * 2 + 1;
        good.send(get(id));
        await good.until(`an answer in round ${round}`, () => endedOf(good.frames.slice(-3)).includes(id));
        for (const client of clients) client.close();
      }
    } finally {
      good.close();
      await server.close();
    }

    expect(internalErrors).toEqual([]);
  });
});
