/** A frame with its header. */
export function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer;
export const SETTINGS_ACK: Buffer;
export function opening(): Buffer;
/** Header blocks by the number of a call on its connection, for a path. */
export const PROFILES: Readonly<
  Record<'envoy' | 'envoy, 50 ms' | 'deadline', (path: string) => (call: number) => Buffer>
>;
