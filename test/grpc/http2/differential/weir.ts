import { HeaderBlockReader } from '../../../../src/grpc/http2/headers/header-blocks';
import { DEFAULT_LIMITS } from '../../../../src/grpc/http2/limits/limits';
import { MemoryPeer } from '../memory-peer';
import { TestApplication } from '../test-application';
import { ReactionReader, barrier } from './reactions';
import type { Sequence } from './sequences';

/** More than what a small window makes the server wait for, see `pump` of its send queue. */
const TICK_MS = 100;
/** The PINGs between the steps are no flood. */
const STEP_LIMITS = { pingStrikes: Infinity };
const headerBlocks = new HeaderBlockReader(new TestApplication(), DEFAULT_LIMITS);

/** The reactions of weir's server to the steps, up to the end of the connection. */
export function weirReactions({ steps, isFlood }: Sequence): readonly string[] {
  const peer = new MemoryPeer(isFlood ? {} : STEP_LIMITS, new TestApplication(), { headerBlocks });
  const reader = new ReactionReader();
  const reactions: string[] = [];
  let seen = 0;
  for (const [at, step] of steps.entries()) {
    peer.send(step.bytes).wait(TICK_MS);
    if (step.isComplete) peer.send(barrier(at));
    const { frames } = peer;
    for (const frame of frames.slice(seen)) reader.read(frame);
    seen = frames.length;
    reactions.push(reader.take(peer.transport.isDestroyed, isFlood));
    if (reader.hasEnded || peer.transport.isDestroyed) break;
    if (step.isComplete && !reader.hasAcknowledged(at)) throw new Error('the PING was not answered');
  }
  peer.connection.transportClosed();
  return reactions;
}
