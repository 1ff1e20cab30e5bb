import { endedOf, get, goawaysOf, hello, ping } from './frames';
import { MemoryPeer } from './memory-peer';
import { RandomFrames } from './random-frames';
import { connectPlain } from './raw-client';
import { seededRandom } from '../../support/data/seeded-random';
import { startServer } from './test-application';

/** Higher than any stream of a random sequence except the highest possible one. */
const LATER_STREAM = 1_001;
/** Milliseconds between two checks whether the process is busy. */
const TICK = 50;
/** Connections over sockets at a time. */
const AT_ONCE = 10;

type Outcome = 'ended' | 'alive' | 'without room';

/** What has become of a connection that received these chunks. Throws what is wrong with it. */
function outcomeOf(chunks: readonly Buffer[], isBusy: boolean): Outcome {
  // In a busy process, work waits until the process is idle again.
  const peer = new MemoryPeer(isBusy ? { pacedStreams: 1 } : {});
  peer.isBusy = isBusy;
  if (isBusy) peer.wait(TICK);
  for (const chunk of chunks) peer.send(chunk);
  peer.isBusy = false;
  if (isBusy) peer.wait(4 * TICK);
  if (peer.internalErrors.length > 0) throw peer.internalErrors[0];
  let outcome: Outcome = 'ended';
  if (!peer.hasEnded) {
    peer.send(ping('alive?!!')).send(get(LATER_STREAM, '/hold'));
    const isServed = peer.application.held.some(({ stream: { id } }) => id === LATER_STREAM);
    outcome = isServed ? 'alive' : 'without room';
    // Its windows may be closed: an empty response needs none.
    peer.finish(Infinity, '');
    if (isServed && !endedOf(peer.frames).includes(LATER_STREAM)) throw new Error('not answered');
  } else if (!peer.transport.isDestroyed && goawaysOf(peer.frames).length === 0) throw new Error('no GOAWAY');
  if (peer.close().heldBytes !== 0) throw new Error('memory kept');
  return outcome;
}

/** Sends random sequences on as many connections in memory. */
export function expectHarmless(connections: number, seed: string): void {
  const frames = new RandomFrames(seededRandom(seed));
  const outcomes = { ended: 0, alive: 0, 'without room': 0 };
  for (let number = 0; number < connections; number += 1) {
    const bytes = frames.sequence();
    try {
      outcomes[outcomeOf(frames.cut(bytes), number % 4 === 0)] += 1;
    } catch (error) {
      const description = `connection ${number} of seed ${seed}: ${bytes.toString('base64')}`;
      throw new Error(description, { cause: error });
    }
  }
  // Both valid and invalid sequences must occur.
  expect(outcomes.alive).toBeGreaterThan(connections / 40);
  expect(outcomes.ended).toBeGreaterThan(connections / 40);
}

/** Sends random sequences on as many connections over sockets, while another client is served. */
export async function expectHarmlessOverSockets(connections: number, seed: string): Promise<void> {
  const frames = new RandomFrames(seededRandom(`${seed} over sockets`));
  const internalErrors: unknown[] = [];
  const server = await startServer({
    limits: { lingerMs: 50 },
    onInternalError: (error) => internalErrors.push(error),
  });
  const good = connectPlain(server.address).send(hello());
  try {
    for (let round = 0; round < connections / AT_ONCE; round += 1) {
      const clients = Array.from({ length: AT_ONCE }, () => connectPlain(server.address));
      for (const client of clients) for (const chunk of frames.cut(frames.sequence())) client.send(chunk);
      const id = 2 * round + 1;
      good.send(get(id));
      await good.until(`an answer in round ${round}`, () => endedOf(good.frames.slice(-3)).includes(id));
      for (const client of clients) client.close();
    }
  } finally {
    good.close();
    await server.close();
  }
  expect(internalErrors).toEqual([]);
}
