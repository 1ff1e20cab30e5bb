// Values that the chart must reject: each file of test/deploy/rejected begins with a part of the message.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../workspace.mjs';
import { template } from './render.mjs';

const FOLDER = 'test/deploy/rejected';

/** One sentence for each file that Helm renders, or rejects for another reason. */
export function rejectedValues(helm) {
  return readdirSync(join(ROOT, FOLDER)).flatMap((name) => {
    const path = `${FOLDER}/${name}`;
    const expected = /^# (.*)$/m.exec(readFileSync(join(ROOT, path), 'utf8'))[1];
    const { isOk, complaint } = template(helm, path);
    if (isOk) return [`${path} is rendered, but should be rejected: ${expected}`];
    return complaint.includes(expected) ? [] : [`${path} is rejected, but not with "${expected}":\n${complaint}`];
  });
}
