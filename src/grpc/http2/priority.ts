import { MAX_31_BITS } from './protocol';

/** The stream that priority fields depend on; the exclusive bit is not of the number. */
export const dependencyAt = (source: Buffer, start: number): number => source.readUInt32BE(start) & MAX_31_BITS;
