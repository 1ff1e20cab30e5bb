import { parseNanoseconds } from '../../text/duration';
import type { ALGORITHMS, RuleLimit } from '../rule-config';
import { type BlockConfig, MAX_WINDOW_SECONDS, durationText } from '../unit';
import type { ProblemCode } from './problems/problem';
import { Fields, mapsIn } from './read-fields';
import { describeNode, isNull, showText, type YamlNode } from './yaml/yaml-tree';

const SECOND = 1_000_000_000n;
/** What a block has to be as long as. */
interface Counted extends Pick<RuleLimit, 'requestsPerUnit' | 'burst' | 'lease' | 'postpaid'> {
  readonly algorithm: (typeof ALGORITHMS)[number] | undefined;
}

/**
 * `block_for` of a limit, a duration or a mapping; undefined when it has none, or an invalid one.
 *
 * @param window of the limit, in seconds; 0: it has no valid one
 */
export function readBlock(limit: Fields<'rate_limit'>, counted: Counted, window: number): BlockConfig | undefined {
  const node = limit.given('block_for');
  if (node === undefined) return undefined;
  const { context } = limit;
  const key = limit.keyOf('block_for');
  function invalid(message: string, advice: string, code: ProblemCode = 'invalid-block-for'): undefined {
    context.report(node ?? key, { code, message, advice });
  }
  const block = node.kind === 'list' ? undefined : readFields(limit, node);
  if (node.kind === 'list') return invalid(`\`block_for\` is ${describeNode(node)}`, SHAPE);
  if (block === undefined) return undefined;
  const { first, factor = 1, most = first, forgottenAfter = 0 } = block;
  if (factor > 1 && (block.most === undefined || forgottenAfter === 0))
    return invalid('a block with a `factor` needs `most` and `forgotten_after`', SHAPE);
  if (factor === 1 && (block.most !== undefined || forgottenAfter > 0))
    return invalid('`most` and `forgotten_after` have no effect without a `factor` above 1', SHAPE);
  if (most < first)
    return invalid('the longest block is shorter than the first one', `Write most: ${durationText(first)}, or longer.`);
  if (counted.requestsPerUnit === 0)
    return invalid(
      'a limit of 0 denies all calls, and has no use for `block_for`',
      'Remove it.',
      'block-without-limit',
    );
  const other = counted.lease === true ? 'lease' : counted.postpaid ? 'postpaid' : undefined;
  if (other !== undefined)
    return invalid(`a limit with \`block_for\` cannot have \`${other}\``, 'Remove one of the two.', 'block-combined');
  const { algorithm, burst = counted.requestsPerUnit, requestsPerUnit } = counted;
  const least = algorithm === 'token_bucket' ? Math.ceil((burst * window) / requestsPerUnit) : window;
  if (first < least) {
    const what = algorithm === 'token_bucket' ? 'the time in which the bucket fills' : 'the window';
    return invalid(
      `a block of ${durationText(first)} is shorter than ${what}, ${durationText(least)}`,
      `Write ${durationText(least)}, or longer: after a shorter block, callers would pass more often ` +
        'than the limit allows.',
      'block-too-short',
    );
  }
  return { first, factor, most, forgottenAfter };
}

const SHAPE = 'Write a duration, such as 10m, or { first: 1m, factor: 2, most: 1h, forgotten_after: 24h }.';

function readFields(limit: Fields<'rate_limit'>, node: YamlNode) {
  if (node.kind === 'scalar') {
    const first = durationOf(limit, node, 'block_for');
    return first === undefined ? undefined : { first, factor: undefined, most: undefined, forgottenAfter: undefined };
  }
  const fields = new Fields(limit.context, 'block_for', mapsIn(node));
  const names = ['first', 'most', 'forgotten_after'] as const;
  const [first, most, forgottenAfter] = names.map((name) => {
    const given = fields.given(name);
    return given === undefined ? undefined : durationOf(limit, given, name);
  });
  const isWrong = names.some(
    (name, index) => fields.isWrong(name) || (fields.given(name) && [first, most, forgottenAfter][index] === undefined),
  );
  if (isWrong || fields.isWrong('factor')) return undefined;
  if (first !== undefined) return { first, factor: fields.count('factor'), most, forgottenAfter };
  limit.context.report(limit.keyOf('block_for'), {
    code: 'invalid-block-for',
    message: '`block_for` has no `first`',
    advice: SHAPE,
  });
  return undefined;
}

/** In seconds; undefined when the text is no duration of whole seconds, which is reported. */
function durationOf({ context }: Fields<'rate_limit'>, node: YamlNode, name: string): number | undefined {
  const text = node.kind === 'scalar' && !isNull(node) ? node.text : '';
  const nanoseconds = parseNanoseconds(text);
  const isWhole = nanoseconds !== undefined && nanoseconds > 0n && nanoseconds % SECOND === 0n;
  const seconds = Number((nanoseconds ?? 0n) / SECOND);
  if (isWhole && seconds <= MAX_WINDOW_SECONDS) return seconds;
  context.report(node, {
    code: 'invalid-block-for',
    message: `\`${name}\` is '${showText(text)}', which is no duration of whole seconds up to 10 years`,
    advice: 'Write it like 90s, 10m or 1h30m.',
  });
  return undefined;
}
