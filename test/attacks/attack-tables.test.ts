import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { attackTables } from './attack-tables';
import { ATTACKS } from './attacks';

describe('every group of attacks', () => {
  it('has a table in test/README.md', () => {
    expect([...attackTables().keys()]).toEqual(Object.keys(ATTACKS));
  });

  it('is tested once', () => {
    const files = readdirSync(__dirname).filter((name) => name.endsWith('.test.ts'));
    const texts = files.map((name) => readFileSync(join(__dirname, name), 'utf8'));
    const tested = texts.flatMap((text) =>
      Array.from(text.matchAll(/^attackTests\('(.*)'\);$/gm), ([, heading = '']) => heading),
    );
    expect(tested.toSorted()).toEqual(Object.keys(ATTACKS).toSorted());
  });
});
