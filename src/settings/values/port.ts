import { refused, type ValueType } from './value-type';
import { wholeNumber } from './whole-number';

const number = wholeNumber({ min: 0, max: 65535 });

/** A port. Kubernetes sets `<SERVICE>_PORT=tcp://…` for every service beside a pod: one called `grpc` breaks GRPC_PORT. */
export const port: ValueType<number> = {
  ...number,
  read(text) {
    return /^(?:tcp|udp|sctp):\/\//.test(text)
      ? refused(
          'a Kubernetes service link seems to have set it: give the pod enableServiceLinks: false, or its own value for the variable',
        )
      : number.read(text);
  },
};
