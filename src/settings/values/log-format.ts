import { accepted, type ValueType } from './value-type';
import { choice } from './choice';

const known = choice({ text: [], json: [] });

/** As in the Go service, whatever is not `json` means text; what is neither gets a remark. */
export const logFormat: ValueType<'text' | 'json'> = {
  ...known,
  read(text) {
    const reading = known.read(text);
    return 'value' in reading ? reading : accepted('text', 'everything but json means text');
  },
};
