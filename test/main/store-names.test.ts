import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const SRC = join(__dirname, '../../src');

it('the name of the store is read by the settings and by what opens it, and by nothing else', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const reading = files.filter((file) => readFileSync(join(SRC, file), 'utf8').includes('backendType'));
  expect(reading.filter((file) => !file.startsWith('settings'))).toEqual([join('main', 'counter-store.ts')]);
});
