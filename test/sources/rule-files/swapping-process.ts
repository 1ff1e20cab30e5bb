// Prints `ready`, and after it has read a line replaces a set of rule files by the next one again and again. All files
// of one set have the same limit. Arguments: the folder; how the sets are replaced (`mount`, `keeping mount` or
// `link`).
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { ConfigMapMount, RuleTree, rules } from '../../support/data/rule-tree';

export const FILES = 20;
export const SWAPS = 60;
const PAUSE = 10;

/** The files of one set. */
function generation(number: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: FILES }, (_, i) => [`f${i}.yaml`, rules(`d${i}`, number)]));
}

function publisher(base: string, how: string): (number: number) => void {
  const tree = new RuleTree(base);
  if (how !== 'link') {
    const mount = new ConfigMapMount(tree, 'config', how === 'keeping mount');
    return (number) => mount.publish(generation(number));
  }
  return (number) => {
    for (const [path, content] of Object.entries(generation(number))) tree.write(`${number}/config/${path}`, content);
    if (number === 1) return tree.link('current', '1');
    tree.switchLink('current', `${number}`);
    tree.remove(`${number - 1}`);
  };
}

async function swap(base: string, how: string): Promise<void> {
  const publish = publisher(base, how);
  publish(1);
  process.stdout.write('ready\n');
  await once(process.stdin, 'data');
  for (let number = 2; number <= SWAPS; number += 1) {
    publish(number);
    await wait(PAUSE);
  }
  process.stdin.destroy();
}

const [, , base, how] = process.argv;
if (require.main === module && base !== undefined && how !== undefined) void swap(base, how);
