import { accepted, type ValueType } from './value-type';
import { wholeNumber } from './whole-number';

/** gRPC's own limit on a received message. */
export const DEFAULT_MESSAGE_BYTES = 4_194_304;

const bytes = wholeNumber({ min: 0, max: 2_147_483_647 });

/** A number of bytes, where 0 means gRPC's own limit, as in the Go service. */
export const messageSize: ValueType<number> = {
  ...bytes,
  read(text) {
    const reading = bytes.read(text);
    return 'value' in reading && reading.value === 0 ? accepted(DEFAULT_MESSAGE_BYTES) : reading;
  },
};
