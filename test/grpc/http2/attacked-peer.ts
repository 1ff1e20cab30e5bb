import { ErrorCode } from '../../../src/grpc/http2/protocol';
import type { Rejection } from '../../../src/grpc/http2/limits';
import { goawaysOf, ping } from './frames';
import type { MemoryPeer } from './memory-peer';

export const { ENHANCE_YOUR_CALM, REFUSED_STREAM, CANCEL, SETTINGS_TIMEOUT } = ErrorCode;

export function expectCalm(peer: MemoryPeer, as: Rejection): void {
  expect(goawaysOf(peer.frames)).toEqual([expect.objectContaining({ code: ENHANCE_YOUR_CALM })]);
  expect(peer.rejections.filter((kind) => kind === as)).toHaveLength(1);
  expect(peer.rejections.at(-1)).toBe(as);
  expect(peer.transport.isEnded).toBe(true);
  expect(peer.internalErrors).toEqual([]);
}

export function expectAlive(peer: MemoryPeer): void {
  expect(goawaysOf(peer.frames)).toEqual([]);
  expect(peer.transport.isDestroyed).toBe(false);
  peer.send(ping('alive...'));
  expect(peer.frames.at(-1)?.payload.toString()).toBe('alive...');
}
