import { operatorHandlers } from '../../../src/main/operators/answer-operator';
import { answerRequests } from '../../../src/workers/channel/requests/answering';
import { Requests } from '../../../src/workers/channel/requests/requests';
import { until } from '../../support/waiting/until';
import { channelPair } from '../../support/workers/channel-pair';

test('a worker forgets a counter also when the request was cancelled before it was read', async () => {
  const { primary, worker } = channelPair();
  const forgotten: string[] = [];
  const limiter = { forget: (key: string) => forgotten.push(key) };
  answerRequests(worker, { ...operatorHandlers({ decisions: {} as never, limiter, offenders: undefined }) });
  const answer = new Requests(primary).ask('forget', { cacheKey: 'shop_user_ann_0' });
  answer.destroy();

  await until('the counter is forgotten', () => forgotten.length > 0);
  expect(forgotten).toEqual(['shop_user_ann_0']);
});
