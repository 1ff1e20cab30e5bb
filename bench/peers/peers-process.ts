// A process of peers with the largest answers; prints their port.
import { LARGEST_ANSWERS, LargePeers } from '../../test/support/servers/large-peers';

const ways = Object.values(LARGEST_ANSWERS);
const [only] = process.argv.slice(2);
const answerOf = only ? LARGEST_ANSWERS[only as keyof typeof LARGEST_ANSWERS] : undefined;
void new LargePeers((peer) => (answerOf ?? ways[peer % ways.length]!)(peer)).listen(0, '0.0.0.0').then(({ port }) => {
  process.stdout.write(`${port}\n`);
});
